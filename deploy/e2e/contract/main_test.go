// Package contract holds the four services to their OpenAPI documents.
//
// Its tests are made from the documents: every operation, every member of a body, every
// parameter that names something, every documented status. So a new operation is tested
// from the day on which it is documented, and one that the tests cannot reach fails them.
// Every answer of every test is itself held against the document.
//
// There is nothing in it but tests.
package contract

import (
	"testing"
	"time"

	"partilha.dev/pkg/testkit"
)

func TestMain(m *testing.M) { testkit.Main(m) }

// patience is how long anything may take on a busy machine that takes milliseconds on
// an idle one.
const patience = time.Minute
