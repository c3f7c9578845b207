package goals

import (
	"partilha.dev/pkg/auth"
	"partilha.dev/pkg/web"
)

const progressPattern = "/api/v1/goals/{goal_id}/progress"

func (s *Service) routes() []web.Route {
	var (
		write = web.Scope(auth.GoalsWrite)
		read  = web.Scope(auth.GoalsRead)
	)
	return []web.Route{
		{Method: "POST", Pattern: "/api/v1/goals", Access: write, Handle: s.createGoal},
		{Method: "GET", Pattern: "/api/v1/goals", Access: read, Handle: s.listGoals},
		{Method: "GET", Pattern: "/api/v1/goals/{goal_id}", Access: read, Handle: s.getGoal},
		{Method: "PATCH", Pattern: "/api/v1/goals/{goal_id}", Access: write, Handle: s.changeGoal},
		{Method: "DELETE", Pattern: "/api/v1/goals/{goal_id}", Access: write, Handle: s.deleteGoal},
		{Method: "GET", Pattern: "/api/v1/goals/progress", Access: read, Handle: s.listPartnerProgress},
		{Method: "GET", Pattern: progressPattern, Access: read, Handle: s.listProgress},
		{Method: "GET", Pattern: progressPattern + "/stream", Access: read, Listens: true, Handle: s.streamProgress},
	}
}
