// Package stage is what the end-to-end tests play on: the four programs as processes, each
// with its database, a shop that sells, its receiver of webhooks, and the books that are
// compared in the end. It is for tests, of which it fails whatever it cannot do.
package stage

import "time"

// Patience is how long anything may take on a busy machine. It is longer than the half
// minute after which a message comes again that a killed process had taken.
const Patience = 2 * time.Minute

// Soon is how long may pass until something has reached every service while all is
// well. What is promised is a second or two; a busy machine gets more.
const Soon = time.Minute
