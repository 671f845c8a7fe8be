import { type ReactNode, useMemo } from 'react'
import { signOut } from '../data/client.ts'
import { useInboxItems, useOpenRuns, useRecentRuns, useServerInfo } from '../data/server.ts'
import type { InboxItem, RunInfo } from '../data/types.ts'
import { Button, IconButton, Key } from '../parts/button.tsx'
import { Span } from '../parts/figures.tsx'
import { Icon, Mark } from '../parts/icon.tsx'
import { Link } from '../parts/link.tsx'
import { Shape } from '../parts/state.tsx'
import { setFilter, useFilter } from '../window/filter.ts'
import { pathOfRun, type Route } from '../window/router.ts'
import { shortText } from '../words/exact.ts'
import { groupBy } from '../words/format.ts'
import { type Shown, shownInfo, shownItem } from '../words/shown.ts'
import { LiveSign, ThemeButton } from './shell-signs.tsx'

interface SidebarProps {
  readonly route: Route
  readonly onKeys: () => void
  readonly onFind: () => void
}

export function Sidebar({ route, onKeys, onFind }: SidebarProps): ReactNode {
  const { value: info } = useServerInfo()
  return (
    <aside className="side" aria-label="Sidebar">
      <Link className="brand" to="/">
        <Mark />
        legate
        <span className="meta">{info === undefined ? '' : location.host}</span>
      </Link>
      <div className="side-top">
        <Link className="btn" to="/new">
          <Icon name="plus" />
          New run
          <Key>N</Key>
        </Link>
        <Button icon="search" aria-label="Find a run, an agent or an id" title="Find (/)" onClick={onFind} />
      </div>
      <MainNav route={route} />
      <div className="side-list">
        {route.page === 'inbox' ? <Filters /> : <RunLists here={route.values[0] ?? ''} />}
      </div>
      <div className="side-foot">
        <LiveSign />
        <span className="meta cut">{info?.principal.id}</span>
        <span className="grow" />
        <IconButton icon="keyboard" label="Keys" onClick={onKeys} />
        <ThemeButton />
        <IconButton icon="leave" label="Log out" onClick={signOut} />
      </div>
    </aside>
  )
}

function MainNav({ route }: { readonly route: Route }): ReactNode {
  const needs = useInboxItems().value?.length ?? 0
  const current = (page: Route['page']) => (route.page === page ? 'page' : undefined)
  return (
    <nav className="nav" aria-label="Main">
      <Link to="/" aria-current={current('inbox')}>
        <Icon name="inbox" />
        Inbox
        {needs === 0 ? null : (
          <span className="count count-needs">
            {needs}
            <span className="vh"> need you</span>
          </span>
        )}
      </Link>
      <Link to="/diff" aria-current={current('diff')}>
        <Icon name="compare" />
        Compare
      </Link>
      <Link to="/ops" aria-current={current('ops')}>
        <Icon name="ops" />
        Operations
      </Link>
    </nav>
  )
}

/** A run of the sidebar. */
interface Line {
  readonly conversationId: string
  readonly title: string
  readonly state: Shown
  /** How many things in it need a person. */
  readonly needs: number
  readonly startedAt: number | null
}

const MOST_DONE = 12

function RunLists({ here }: { readonly here: string }): ReactNode {
  const items = useInboxItems().value
  const open = useOpenRuns().value
  const recent = useRecentRuns().value
  const { needs, working, done } = useMemo(() => sortRuns(items ?? [], open ?? [], recent ?? []), [items, open, recent])
  return (
    <>
      <RunList title="Needs you" lines={needs} here={here} />
      <RunList title="Working" lines={working} here={here} isTimed />
      <RunList title="Done" lines={done.slice(0, MOST_DONE)} here={here} />
    </>
  )
}

function sortRuns(items: readonly InboxItem[], open: readonly RunInfo[], recent: readonly RunInfo[]) {
  const byRoot = groupBy(items, ({ rootId }) => rootId)
  const known = new Map([...recent, ...open].map((run) => [run.rootId, run]))
  const lineOf = (run: RunInfo): Line => {
    const asked = byRoot.get(run.rootId) ?? []
    const [first] = asked
    const state = first === undefined ? shownInfo(run) : shownItem(first)
    return {
      conversationId: run.conversationId,
      title: titleOf(run),
      state,
      needs: asked.length,
      startedAt: run.startedAt,
    }
  }
  const needs = [...byRoot.keys()].flatMap((rootId) => {
    const run = known.get(rootId)
    return run === undefined ? [] : lineOf(run)
  })
  const isQuiet = ({ rootId }: RunInfo) => !byRoot.has(rootId)
  return {
    needs,
    working: open.filter(isQuiet).map(lineOf),
    done: recent.filter((run) => run.status !== null && isQuiet(run)).map(lineOf),
  }
}

/** The title of a run in lists: as somebody named it, or what was asked. */
export function titleOf({ title, asked, agent }: Pick<RunInfo, 'title' | 'asked' | 'agent'>): string {
  return shortText(title ?? (asked === '' ? `Run of ${agent}` : asked), MOST_TITLE)
}

/** Titles of lists are cut there. */
const MOST_TITLE = 300

interface RunListProps {
  readonly title: string
  readonly lines: readonly Line[]
  readonly here: string
  readonly isTimed?: boolean
}

function RunList({ title, lines, here, isTimed = false }: RunListProps): ReactNode {
  if (lines.length === 0) return null
  return (
    <>
      <h2>{title}</h2>
      <ul>
        {lines.map((line) => (
          <li key={line.conversationId}>
            <Link
              to={pathOfRun(line.conversationId)}
              aria-current={line.conversationId === here ? 'true' : undefined}
              title={line.title}
            >
              <Shape state={line.state} />
              <span className="cut">{line.title}</span>
              {line.needs > 1 ? <span className="meta">{line.needs}</span> : null}
              {isTimed ? (
                <span className="meta">
                  <Span from={line.startedAt} to={null} />
                </span>
              ) : null}
            </Link>
          </li>
        ))}
      </ul>
    </>
  )
}

/** On the inbox the runs are in the page: the sidebar chooses among them. */
function Filters(): ReactNode {
  const recent = useRecentRuns().value ?? []
  const open = useOpenRuns().value ?? []
  const filter = useFilter()
  const runs = [...new Map([...recent, ...open].map((run) => [run.rootId, run])).values()]
  const agents = groupBy(runs, ({ agent }) => agent)
  const owners = groupBy(runs, ({ owner }) => owner ?? '')
  return (
    <>
      <h2>Agents</h2>
      <FilterButton
        isOn={filter.agent === null}
        count={runs.length}
        onPress={() => setFilter({ ...filter, agent: null })}
      >
        Every agent
      </FilterButton>
      {[...agents].sort(byName).map(([agent, its]) => (
        <FilterButton
          key={agent}
          isOn={filter.agent === agent}
          count={its.length}
          onPress={() => setFilter({ ...filter, agent })}
        >
          {agent}
        </FilterButton>
      ))}
      {owners.size < 2 ? null : (
        <>
          <h2>Owners</h2>
          <FilterButton isOn={filter.owner === null} onPress={() => setFilter({ ...filter, owner: null })}>
            Everyone
          </FilterButton>
          {[...owners].sort(byName).map(([owner, its]) => (
            <FilterButton
              key={owner}
              isOn={filter.owner === owner}
              count={its.length}
              onPress={() => setFilter({ ...filter, owner })}
            >
              {owner === '' ? 'Nobody' : owner}
            </FilterButton>
          ))}
        </>
      )}
    </>
  )
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : Number(a > b)
}

interface FilterButtonProps {
  readonly isOn: boolean
  readonly count?: number
  readonly onPress: () => void
  readonly children: ReactNode
}

function FilterButton({ isOn, count, onPress, children }: FilterButtonProps): ReactNode {
  return (
    <button type="button" aria-pressed={isOn} onClick={onPress}>
      <span className="cut">{children}</span>
      {count === undefined ? null : <span className="meta">{count}</span>}
    </button>
  )
}
