package webhooks

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// newDeliveryID returns a UUIDv7 of the event's time, cut to the millisecond, and
// otherwise random. So deliveries sort by the age of their events, and an id tells
// which partition its row is in.
func newDeliveryID(created time.Time) (uuid.UUID, error) {
	id, err := uuid.NewRandom()
	if err != nil {
		return id, fmt.Errorf("make delivery id: %w", err)
	}
	first := firstDeliveryID(created)
	copy(id[:6], first[:6])
	id[6] = 7<<4 | id[6]&0x0f
	return id, nil
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
