package lakefstest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"sluice/lakefs"
)

// RunFaults tries what callers of a store count on when its calls fail: a change that failed has done nothing, or all of
// it if only the answer was lost; no read is torn without saying so; the error wraps the cause; no writer is left open;
// the store goes on. open gives an empty store for each workload; Faulty is put over it.
func RunFaults(t *testing.T, open func(t *testing.T) lakefs.Store) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("Faults", seed), func(t *testing.T) {
			f := NewFaulty(open(t))
			w := Workload{Store: f, Volume: fmt.Sprint("faults-", seed), Seed: seed, Steps: 400, Arm: f.arm}
			if err := w.Run(t.Context()); err != nil {
				t.Error(err)
			}
			if n := f.OpenWriters(); n != 0 {
				t.Errorf("%d writers are still open", n)
			}
		})
	}
}

// errInjected is the cause of the faults of RunFaults.
var errInjected = errors.New("injected fault")

// blockMax is how long a step may be blocked, or take.
const blockMax = 3 * time.Millisecond

// kinds are the faults of RunFaults. Before and After come twice as often.
var kinds = []func(ctx context.Context, op Op, random *rand.Rand) (Fault, Armed){
	before, before, after, after, torn, delay, block,
}

func before(ctx context.Context, _ Op, _ *rand.Rand) (Fault, Armed) {
	return Before(errInjected), Armed{Context: ctx, Cause: wraps(errInjected)}
}

func after(ctx context.Context, op Op, _ *rand.Rand) (Fault, Armed) {
	return After(errInjected), Armed{Context: ctx, Cause: wraps(errInjected), Effect: effects[op]}
}

// torn is as after for what is not a read.
func torn(ctx context.Context, op Op, random *rand.Rand) (Fault, Armed) {
	return Torn(random.IntN(2*rowBytes), errInjected), Armed{Context: ctx, Cause: wraps(errInjected), Effect: effects[op]}
}

func delay(ctx context.Context, _ Op, random *rand.Rand) (Fault, Armed) {
	return Delay(time.Duration(random.IntN(int(blockMax)))), Armed{Context: ctx}
}

// block also ends what does not block at some time, wherever it is then.
func block(ctx context.Context, _ Op, random *rand.Rand) (Fault, Armed) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(random.IntN(int(blockMax))))
	return Block(), Armed{Context: ctx, Cause: wraps(context.DeadlineExceeded), Disarm: cancel}
}

// effects are the calls that change something by themselves; a file begun and written to is not there yet.
var effects = map[Op]Effect{OpClose: Done, OpRemove: Done, OpRemovePrefix: Done, OpRename: Done}

// wraps reports errors that wrap one.
func wraps(cause error) func(error) bool {
	return func(err error) bool { return errors.Is(err, cause) }
}

// arm has a call of some kind fail in some way, if the step makes such a call.
func (f *Faulty) arm(ctx context.Context, random *rand.Rand) Armed {
	op := Ops[random.IntN(len(Ops))]
	fault, armed := kinds[random.IntN(len(kinds))](ctx, op, random)
	f.Inject(Rule{Op: op, When: Nth(1 + random.IntN(2)), Then: fault})
	disarm := armed.Disarm
	armed.Disarm = func() {
		f.Inject()
		if disarm != nil {
			disarm()
		}
	}
	return armed
}
