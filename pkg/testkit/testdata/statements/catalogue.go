// Package statements is read by a test.
package statements

const (
	columns    = `id, name`
	listQuery  = `select ` + columns + ` from things ` + order
	order      = `order by id`
	onlyWords  = `no statement`
	addThing   = 1
	dropThings = "drop"
)

const addStatement = `insert into things (` + columns + `) values (@id, @name)`
