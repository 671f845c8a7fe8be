// The thread of one run: its messages, and below each the calls that came of it. A child's thread is the same, one level deeper.

import { type ReactNode, useCallback, useMemo, useRef } from 'react'
import { useRunState, useTreeSource } from '../../../data/tree.ts'
import { type Entries, type Entry, entriesOf, isAbout, NO_ENTRIES } from '../state/entries.ts'
import { CallRow } from './call-row.tsx'
import { Chunks } from './chunks.tsx'
import { EntryRow } from './entry-row.tsx'

interface RunThreadProps {
  readonly runId: string
  /** 0 at the root. */
  readonly depth: number
  /** Who gave the input: a person at the root, else the host. */
  readonly asker: string
}

/** Rows that come and go together: few, so that none of it takes long. */
const SIZE = 4
const ENTRY_HEIGHT = 96
const CALL_HEIGHT = 32
const CALLS = 8

export function RunThread({ runId, depth, asker }: RunThreadProps): ReactNode {
  const entries = useEntries(runId)
  const render = useCallback(
    (entry: Entry) => (
      <EntryRow
        key={entry.messageId ?? 'first'}
        messageId={entry.messageId}
        hasCalls={entry.callIds.length > 0}
        depth={depth}
        asker={asker}
      >
        {entry.callIds.length === 0 ? null : <Calls ids={entry.callIds} depth={depth} />}
      </EntryRow>
    ),
    [depth, asker],
  )
  return (
    <Chunks items={entries} size={SIZE} guess={ENTRY_HEIGHT} render={render} isWanted={isAbout} fromEnd={depth === 0} />
  )
}

function useEntries(runId: string): readonly Entry[] {
  const { get } = useTreeSource()
  const run = useRunState(runId)
  const before = useRef<Entries>(NO_ENTRIES)
  // The run is another object whenever it has one more node.
  return useMemo(() => {
    before.current = run === undefined ? NO_ENTRIES : entriesOf(get(), run.id, before.current)
    return before.current.all
  }, [run, get])
}

/** With more calls than this, none of their threads is open from the beginning. */
const FEW_CALLS = 8

function Calls({ ids, depth }: { readonly ids: readonly string[]; readonly depth: number }): ReactNode {
  const isFew = ids.length <= FEW_CALLS
  const render = useCallback(
    (id: string) => <CallRow key={id} nodeId={id} depth={depth + 1} isFew={isFew} />,
    [depth, isFew],
  )
  return (
    <ul className="calls">
      <Chunks items={ids} size={CALLS} guess={CALL_HEIGHT} render={render} isWanted={isOneOf} />
    </ul>
  )
}

function isOneOf(id: string, wanted: ReadonlySet<string>): boolean {
  return wanted.has(id)
}
