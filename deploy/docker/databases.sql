-- One database for each service; no service may look into another's.
create database partilha_sales;
create database partilha_commissions;
create database partilha_goals;
create database partilha_webhooks;
