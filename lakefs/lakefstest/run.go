package lakefstest

import (
	"fmt"
	"testing"

	"sluice/lakefs"
)

const (
	rowBytes   = 8120            // sizes around the bounds of layout v2, which mean nothing to other stores
	batchBytes = 516 * rowBytes  // what a writer sends at once
	pieceBytes = 1032 * rowBytes // what a reader asks for at once
)

// cases are the rules, each tried in a volume of its own.
var cases = []struct {
	name string
	run  func(t *testing.T, s lakefs.Store, volume string)
}{
	{"Empty", empty},
	{"RoundTripRanges", roundTripRanges},
	{"ReadBeyondEnd", readBeyondEnd},
	{"OddWrites", oddWrites},
	{"HugeWrite", hugeWrite},
	{"AbandonedWrite", abandonedWrite},
	{"WriterEnds", writerEnds},
	{"FailedClose", failedClose},
	{"LateClose", lateClose},
	{"CancelledWrite", cancelledWrite},
	{"CancelledCalls", cancelledCalls},
	{"Overwrite", overwrite},
	{"OpenFiles", openFiles},
	{"Identity", identity},
	{"ListRemoveRename", listRemoveRename},
	{"Rename", renames},
	{"RemovePrefixes", removePrefixes},
	{"ListingRanges", listingRanges},
	{"ListingOrder", listingOrder},
	{"Limits", limits},
	{"BrokenPrefixes", brokenPrefixes},
	{"Glob", globs},
	{"GlobOddNames", globOddNames},
	{"Names", names},
	{"ConsistentWhileWriting", consistentWhileWriting},
	{"ConcurrentWriters", concurrentWriters},
	{"ConcurrentPublish", concurrentPublish},
	{"ConcurrentReads", concurrentReads},
	{"ConcurrentChanges", concurrentChanges},
	{"CrossingRenames", crossingRenames},
	{"UniqueIDs", uniqueIDs},
	{"ManyOpenWriters", manyOpenWriters},
}

// Run tries a kind of store. open gives a store for each case; it may be the same one, if it was empty before Run.
func Run(t *testing.T, open func(t *testing.T) lakefs.Store) {
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) { c.run(t, open(t), fmt.Sprintf("case-%d", i)) })
	}
}

// Shared is one place where files are, with as many stores over it as a test opens.
type Shared struct {
	Open func(t *testing.T) lakefs.Store // one more store over the place
	Reap func(t *testing.T)              // takes the bytes of every file away that is not published
}

// sharedCases are the rules that need several stores over one place, or a reap of it.
var sharedCases = []struct {
	name string
	run  func(t *testing.T, s Shared, volume string)
}{
	{"WritersCrossRead", writersCrossRead},
	{"PublishRace", publishRace},
	{"ChangesElsewhere", changesElsewhere},
	{"OpenElsewhere", openElsewhere},
	{"Reap", reap},
	{"ReapedElsewhere", reapedElsewhere},
}

// RunShared tries what Run cannot: several stores over one place.
func RunShared(t *testing.T, s Shared) {
	for i, c := range sharedCases {
		t.Run(c.name, func(t *testing.T) { c.run(t, s, fmt.Sprintf("shared-%d", i)) })
	}
}
