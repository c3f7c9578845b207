package postgres

// PlanOnce is a statement that has the rest of its transaction keep the plans that its
// connection has made once, and look rows up by an index.
//
// It is for statements that join a handful of rows to large tables, some of many
// partitions. PostgreSQL foresees neither how few the rows are nor which partitions they
// spare: left alone it plans such a statement anew each time, which may cost several
// times what the statement does, and would rather read a table that is small so far, or
// whole partitions, than look up a row.
const PlanOnce = `
select set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_hashjoin', 'off', true),
	set_config('enable_mergejoin', 'off', true), set_config('enable_seqscan', 'off', true)`
