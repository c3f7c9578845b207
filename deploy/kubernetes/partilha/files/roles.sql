-- One database and one role for each service, made when the data folder is new. A role
-- owns its own database and cannot enter another's.
\getenv sales_password SALES_DATABASE_PASSWORD
\getenv commissions_password COMMISSIONS_DATABASE_PASSWORD
\getenv goals_password GOALS_DATABASE_PASSWORD
\getenv webhooks_password WEBHOOKS_DATABASE_PASSWORD

create role sales login password :'sales_password';
create role commissions login password :'commissions_password';
create role goals login password :'goals_password';
create role webhooks login password :'webhooks_password';

create database partilha_sales owner sales;
create database partilha_commissions owner commissions;
create database partilha_goals owner goals;
create database partilha_webhooks owner webhooks;

revoke connect on database partilha_sales, partilha_commissions, partilha_goals, partilha_webhooks, postgres from public;
