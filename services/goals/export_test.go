package goals

// Forget removes what is no longer remembered of changes.
var Forget = forget

// AddToTotalsStatement is how counting changes totals.
const AddToTotalsStatement = addToTotalsStatement
