import { type TreeState, treeOf } from 'legate/client'
import { type ReactNode, useSyncExternalStore } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import { useTree } from '../../data/tree.ts'
import type { TreeStore } from '../../data/tree-store.ts'
import type { RunInfo, RunTree } from '../../data/types.ts'
import { Money, Span } from '../../parts/figures.tsx'
import { Link } from '../../parts/link.tsx'
import { Crew, Shape } from '../../parts/state.tsx'
import { titleOf } from '../../shell/sidebar.tsx'
import { pathOfRun } from '../../window/router.ts'
import { activityOf, answerLine, busiestRun, lastWords } from '../../words/activity.ts'
import { tokens, total } from '../../words/format.ts'
import { type Shown, shownDeep, shownInfo, shownRun, shownStatus, statusWords, turnShown } from '../../words/shown.ts'

/** So many runs are followed word by word; the others show what the list knows. */
const MOST_FOLLOWED = 10
/** A tree with more events is not read whole for a line. */
const MOST_EVENTS = 5_000

/** A run that works: who does what, how long, tokens and money. */
export function WorkingItem({ run, place }: { readonly run: RunInfo; readonly place: number }): ReactNode {
  const look = useRequest(place < MOST_FOLLOWED ? `look ${run.runId}` : null, () => client.look(run.runId)).value
  const isSmall = look !== undefined && look.lastSeq < MOST_EVENTS
  const store = useTree(isSmall ? run.rootId : undefined)
  if (store !== null) return <FollowedItem run={run} store={store} />
  const state = shownInfo(run)
  return (
    <RunLine run={run} state={state} crew={[]} used={total(run.usage)}>
      <b className="mid">{run.agent}</b>
      <span className="cut">{state === 'working' ? 'works' : 'waits'}</span>
    </RunLine>
  )
}

function FollowedItem({ run, store }: { readonly run: RunInfo; readonly store: TreeStore }): ReactNode {
  const tree = useOfStore(store, (state) => turnShown(treeOf(state, run.conversationId)?.runs ?? []))
  const who = useOfStore(store, (state) => busiestRun(state, run.runId))
  const agent = useOfStore(store, (state) => state.runs.get(who)?.agent ?? run.agent)
  const does = useOfStore(store, (state) => activityOf(state, who))
  const words = useOfStore(store, (state) => lastWords(state, who))
  const state = tree === undefined ? shownInfo(run) : shownDeep(tree)
  return (
    <RunLine
      run={run}
      state={state}
      crew={tree === undefined ? [] : crewOf(tree)}
      used={total(tree?.usage ?? run.usage)}
    >
      <b className="mid">{agent}</b>
      <span className="cut">
        {does}
        {words === '' ? '' : `: ${words}`}
      </span>
    </RunLine>
  )
}

function useOfStore<Value>(store: TreeStore, read: (state: TreeState) => Value): Value {
  const snapshot = () => read(store.get())
  return useSyncExternalStore(store.subscribe, snapshot, snapshot)
}

function crewOf(run: RunTree): Shown[] {
  return run.children.flatMap((child) => [shownRun(child), ...crewOf(child)])
}

/** Whether its title says something else than the name of its agent. */
function isNamed({ title, asked }: RunInfo): boolean {
  return title !== null || asked !== ''
}

/** A run that has ended: its outcome in words. */
export function DoneItem({ run }: { readonly run: RunInfo }): ReactNode {
  const outcome = useRequest(`outcome ${run.runId}`, () => client.result(run.runId)).value
  const state = run.status === null ? 'done' : shownStatus(run.status)
  const text = answerLine(outcome?.text ?? '')
  const reason = outcome?.error?.message ?? ''
  const words =
    run.status === null || run.status === 'completed' ? text : `${statusWords(run.status)}. ${reason || text}`
  return (
    <RunLine run={run} state={state} crew={[]} used={total(run.usage)}>
      {isNamed(run) ? <b className="mid">{run.agent}</b> : null}
      <span className="cut">{words}</span>
    </RunLine>
  )
}

interface RunLineProps {
  readonly run: RunInfo
  readonly state: Shown
  readonly crew: readonly Shown[]
  readonly used: number
  readonly children: ReactNode
}

function RunLine({ run, state, crew, used, children }: RunLineProps): ReactNode {
  const usage = useRequest(`usage ${run.runId} ${run.endedAt ?? ''}`, () => {
    return client.conversation(run.conversationId).usageStats({ of: 'tree' })
  }).value
  return (
    <li className="item" data-nav tabIndex={-1}>
      <Shape state={state} />
      <div className="grow">
        <div className="item-t">
          <Link to={pathOfRun(run.conversationId)} className="cut">
            {titleOf(run)}
          </Link>
        </div>
        <div className="item-s">{children}</div>
      </div>
      <div className="cols">
        <span>
          <Crew states={crew} />
        </span>
        <Span from={run.startedAt} to={run.endedAt} />
        <span>{tokens(used)}</span>
        <Money usd={usage?.total.usd} />
      </div>
    </li>
  )
}
