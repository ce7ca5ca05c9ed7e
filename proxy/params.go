package proxy

import "github.com/jackc/pgx/v5/pgproto3"

// reportParameters sends ParameterStatus for each reported setting whose value the client does not know.
// As PostgreSQL since 14, that is done once before ReadyForQuery rather than at each SET.
func (s *session) reportParameters() {
	for _, p := range s.engine.ParameterStatus() {
		if known, ok := s.reported[p.Name]; ok && known == p.Value {
			continue
		}
		s.reported[p.Name] = p.Value
		s.out.send(&pgproto3.ParameterStatus{Name: p.Name, Value: cString(p.Value)})
	}
}
