package web

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"go.uber.org/zap"
)

const (
	streamBuffer   = 32 << 10         // bytes that are held back before anything is sent
	streamPatience = 15 * time.Second // for one buffer to be taken by the caller
)

// Stream is the body of an answer that is made while it is sent, so that its length does
// not matter. An error before the first 32 KiB is answered like any other; after that the
// connection is broken off, since what was sent cannot be taken back.
type Stream struct {
	Type  string // the Content-Type
	Write func(io.Writer) error
	// Live sends the head at once and then each write by itself: for what is told as it
	// happens. Whatever ends it, the answer just ends, and who listened comes again.
	Live bool
}

// send answers the stream and returns the status that the caller has seen.
func (s *Stream) send(w http.ResponseWriter, r *http.Request, status int, log *zap.Logger, refuse func(error) int) int {
	sent := &sending{w: w, control: http.NewResponseController(w), media: s.Type, status: status}
	if s.Live {
		return s.tell(sent, r, log)
	}
	buffer := bufio.NewWriterSize(sent, streamBuffer)
	err := s.Write(buffer)
	if err == nil {
		err = buffer.Flush()
	}
	switch {
	case err == nil && !sent.begun: // nothing to send is an answer too
		sent.begin()
	case err != nil && !sent.begun:
		return refuse(err)
	case err != nil:
		log.Warn("answer broken off", zap.String("path", r.URL.Path), zap.String("request_id", w.Header().Get(requestIDHeader)), zap.Error(err))
		panic(http.ErrAbortHandler)
	}
	return status
}

// tell sends a live stream. That the caller leaves, or takes too long, is how most of
// them end.
func (s *Stream) tell(sent *sending, r *http.Request, log *zap.Logger) int {
	if _, err := sent.Write(nil); err != nil {
		return sent.status
	}
	if err := s.Write(sent); err != nil && !sent.failed {
		log.Warn("live answer ended", zap.String("path", r.URL.Path), zap.String("request_id", sent.w.Header().Get(requestIDHeader)), zap.Error(err))
	}
	return sent.status
}

// sending is an answer whose head goes out with its first bytes. Each write has its own
// time: a caller who keeps taking what is sent may take as long as it needs.
type sending struct {
	w       http.ResponseWriter
	control *http.ResponseController
	media   string
	status  int
	begun   bool
	failed  bool // something could not be sent
}

func (s *sending) begin() {
	s.begun = true
	s.w.Header().Set("Content-Type", s.media)
	s.w.WriteHeader(s.status)
}

func (s *sending) Write(p []byte) (int, error) {
	_ = s.control.SetWriteDeadline(time.Now().Add(streamPatience)) // without it the server's own holds
	if !s.begun {
		s.begin()
	}
	n, err := s.w.Write(p)
	if err == nil {
		err = s.control.Flush()
	}
	if errors.Is(err, http.ErrNotSupported) { // then it is sent when the buffer is full
		err = nil
	}
	if err != nil {
		s.failed = true
		err = fmt.Errorf("send: %w", err)
	}
	return n, err
}
