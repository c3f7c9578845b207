package webhooks

import (
	"fmt"
	"net/http"

	"partilha.dev/pkg/postgres"
	"partilha.dev/pkg/web"
)

// The row of a replay that ended before is written as it was: it has to be told from one
// that is not there.
const cancelReplayStatement = `
update replays set state = case state when 'running' then 'stopped' else state end, ended_at = coalesce(ended_at, $4::timestamptz)
where tenant_id = $1 and endpoint_id = $2 and replay_id = $3`

// cancelReplay answers DELETE …/replays/{replay_id}: a running replay is stopped. What it
// has queued by then is sent all the same, and it can still be read. One that has ended
// stays as it is.
func (s *Service) cancelReplay(call *web.Call) (web.Answer, error) {
	endpointID, id, err := s.replayAt(call)
	if err != nil {
		return web.Answer{}, err
	}
	done, err := s.deps.Pool.Exec(call.Context(), cancelReplayStatement, call.Tenant(), endpointID, id, s.deps.Now())
	switch {
	case err != nil:
		return web.Answer{}, fmt.Errorf("cancel replay %s: %w", id, postgres.Explain(err))
	case done.RowsAffected() == 0:
		return web.Answer{}, web.NotFound()
	}
	return web.Answer{Status: http.StatusNoContent}, nil
}
