import { type ReactNode, useEffect, useState } from 'react'
import { reload } from '../../data/request.ts'
import { useInboxItems, useOpenRuns, useRecentRuns, useSpentToday } from '../../data/server.ts'
import type { InboxItem, RunInfo } from '../../data/types.ts'
import { useAskKeys } from '../../panes/ask/ask-keys.ts'
import { Boundary } from '../../parts/boundary.tsx'
import { Button, Key } from '../../parts/button.tsx'
import { Link } from '../../parts/link.tsx'
import { Hero, ProblemNote, SkeletonList } from '../../parts/states.tsx'
import { useAway } from '../../window/away.ts'
import { isShown, useFilter } from '../../window/filter.ts'
import { useStaying } from '../../window/present.ts'
import { useRowKeys } from '../../window/rows.ts'
import { money } from '../../words/format.ts'
import { AnsweredItem, seenOf, useAnswered } from './answered-item.tsx'
import { keyOfItem, NeedsItem } from './needs-item.tsx'
import { DoneItem, WorkingItem } from './run-item.tsx'

const FIRST_DONE = 15

export function InboxPage(): ReactNode {
  const lists = useLists()
  useRowKeys()
  useAskKeys()
  const waiting = lists.needs.filter((item) => !lists.isGone(item)).length
  useEffect(() => {
    document.title = waiting === 0 ? 'Inbox · legate' : `(${waiting}) Inbox · legate`
  }, [waiting])
  if (lists.isEmpty) return <EmptyInbox />
  return (
    <div className="scroll">
      <div className="page">
        <div className="page-h">
          <h1>Inbox</h1>
        </div>
        {lists.isLoading ? null : <Summary needs={waiting} working={lists.working.length} />}
        {lists.error === null ? null : <ProblemNote error={lists.error} onRetry={() => reload('lists ')} />}
        {lists.isLoading ? <SkeletonList label="Loading the inbox" /> : <Sections lists={lists} />}
      </div>
    </div>
  )
}

interface Lists {
  readonly needs: readonly InboxItem[]
  /** Whether an item stays only because somebody is at it. */
  readonly isGone: (item: InboxItem) => boolean
  readonly working: readonly RunInfo[]
  readonly done: readonly RunInfo[]
  readonly titles: ReadonlyMap<string, string | null>
  readonly isLoading: boolean
  readonly isEmpty: boolean
  readonly error: unknown
}

function useLists(): Lists {
  const [items, open, recent] = [useInboxItems(), useOpenRuns(), useRecentRuns()]
  const filter = useFilter()
  const away = useAway()
  const listed = (items.value ?? []).filter((one) => {
    return (
      isShown(filter, { ...one, agent: one.path[0] ?? one.agent }) && !(one.type === 'failed' && away.has(one.runId))
    )
  })
  const { items: needs, isGone } = useStaying(listed, keyOfItem)
  const roots = new Set(needs.map(({ rootId }) => rootId))
  const rest = (runs: readonly RunInfo[] = []) => runs.filter((run) => !roots.has(run.rootId) && isShown(filter, run))
  const all = [...(recent.value ?? []), ...(open.value ?? [])]
  return {
    needs,
    isGone,
    working: rest(open.value),
    done: rest(recent.value).filter(({ status }) => status !== null),
    titles: new Map(all.map(({ rootId, title }) => [rootId, title])),
    isLoading: items.value === undefined || open.value === undefined || recent.value === undefined,
    isEmpty: needs.length === 0 && items.value?.length === 0 && open.value?.length === 0 && recent.value?.length === 0,
    error: items.error ?? open.error ?? recent.error,
  }
}

function Summary({ needs, working }: { readonly needs: number; readonly working: number }): ReactNode {
  const usd = useSpentToday()
  const spent = usd === undefined || usd === null ? '' : `, ${usd === 0 ? '$0' : money(usd)} today`
  const asked = needs === 0 ? 'Nothing waiting for you' : `${needs} waiting for you`
  return (
    <p className="sum">
      {asked}, {working === 0 ? 'nothing' : working} running
      {spent}.
    </p>
  )
}

function Sections({ lists }: { readonly lists: Lists }): ReactNode {
  const { needs, working, done, titles } = lists
  const first = needs.find((item) => !lists.isGone(item))
  const answered = useAnswered(useInboxItems().value)
  const [isAll, setAll] = useState(false)
  const shown = isAll ? done : done.slice(0, FIRST_DONE)
  return (
    <>
      <Section title="Needs you" count={needs.length} isUrgent>
        {needs.map((item) => (
          <Boundary key={keyOfItem(item)} what="This item">
            <NeedsItem
              item={item}
              title={titles.get(item.rootId) ?? null}
              isFirst={item === first}
              isGone={lists.isGone(item)}
            />
          </Boundary>
        ))}
      </Section>
      <Section title="Answered just now" count={answered.length}>
        {answered.map((item) => (
          <Boundary key={seenOf(item)} what="This answer">
            <AnsweredItem item={item} />
          </Boundary>
        ))}
      </Section>
      <Section title="Working" count={working.length}>
        {working.map((run, at) => (
          <Boundary key={run.rootId} what="This run">
            <WorkingItem run={run} place={at} />
          </Boundary>
        ))}
      </Section>
      <Section
        title="Done"
        count={done.length}
        more={
          shown.length < done.length ? (
            <Button look="quiet" isSmall onClick={() => setAll(true)}>
              All {done.length}
            </Button>
          ) : null
        }
      >
        {shown.map((run) => (
          <Boundary key={run.rootId} what="This run">
            <DoneItem run={run} />
          </Boundary>
        ))}
      </Section>
    </>
  )
}

interface SectionProps {
  readonly title: string
  readonly count: number
  readonly isUrgent?: boolean
  readonly more?: ReactNode
  readonly children: ReactNode
}

function Section({ title, count, isUrgent = false, more, children }: SectionProps): ReactNode {
  if (count === 0) return null
  const id = `h-${title.replaceAll(' ', '-')}`
  return (
    <section className="sect" aria-labelledby={id}>
      <header>
        <h2 id={id}>{title}</h2>
        <span className={`count ${isUrgent ? 'count-needs' : ''}`}>{count}</span>
        <span className="grow" />
        {more}
      </header>
      <ul className="list">{children}</ul>
    </section>
  )
}

function EmptyInbox(): ReactNode {
  return (
    <Hero icon="inbox" title="Nothing has run yet">
      <p>
        What needs you, what works and what is done will be listed here. Start a run, or watch the demo in a terminal.
      </p>
      <div className="row">
        <Link className="btn btn-primary" to="/new">
          New run
          <Key>N</Key>
        </Link>
      </div>
      <p className="dim">From a terminal:</p>
      <pre>{'legate run reviewer "Review src/"\nlegate demo'}</pre>
    </Hero>
  )
}
