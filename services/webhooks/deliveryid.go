package webhooks

import (
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/google/uuid"

	"partilha.dev/pkg/event"
)

// deliveryIDOf returns the id of the delivery of an event to an endpoint: a UUIDv7 of
// the event's time, cut to the millisecond, whose other bits are a digest of the two.
// So there is one delivery for the two at most, deliveries sort by the age of their
// events, and an id tells which partition its row is in.
func deliveryIDOf(created time.Time, eventID event.ID, endpoint uuid.UUID) uuid.UUID {
	digest := sha256.Sum256(append(eventID[:], endpoint[:]...))
	id := uuid.UUID(digest[:16])
	first := firstDeliveryID(created)
	copy(id[:6], first[:6])
	id[6] = 7<<4 | id[6]&0x0f
	id[8] = 2<<6 | id[8]&0x3f
	return id
}

// firstDeliveryID returns the least id of the event's millisecond and all later ones.
func firstDeliveryID(created time.Time) (id uuid.UUID) {
	var ms [8]byte
	binary.BigEndian.PutUint64(ms[:], uint64(created.UnixMilli()))
	copy(id[:6], ms[2:])
	return id
}

// createdWithin returns the millisecond of which id speaks: from is in it, to is not.
func createdWithin(id uuid.UUID) (from, to time.Time) {
	var ms [8]byte
	copy(ms[2:], id[:6])
	from = time.UnixMilli(int64(binary.BigEndian.Uint64(ms[:]))).UTC()
	return from, from.Add(time.Millisecond)
}
