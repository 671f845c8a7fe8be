// Two runs, node by node: what was said, what it cost, how long it took.

import { type ReactNode, useId, useState } from 'react'
import { useRequest } from '../../data/request.ts'
import { useRecentRuns } from '../../data/server.ts'
import type { RunInfo } from '../../data/types.ts'
import { Button, copy } from '../../parts/button.tsx'
import { IdButton } from '../../parts/figures.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Link } from '../../parts/link.tsx'
import { Pill } from '../../parts/state.tsx'
import { ProblemNote, SkeletonList } from '../../parts/states.tsx'
import { addressOf, navigate, pathOfRun } from '../../window/router.ts'
import { moment } from '../../words/format.ts'
import { shownRun } from '../../words/shown.ts'
import '../../styles/diff.css'
import { ChangeRow } from './change-row.tsx'
import { FigureRow } from './figures.tsx'
import { type Comparison, compareRuns, type Side } from './sides.ts'

interface DiffProps {
  /** Ids of runs or conversations; null while nobody has chosen. */
  readonly left: string | null
  readonly right: string | null
}

export function DiffPage({ left, right }: DiffProps): ReactNode {
  return (
    <div className="scroll">
      <div className="page page-wide">
        <div className="page-h">
          <h1>Compare two runs</h1>
          <span className="grow" />
          {left === null || right === null ? null : <Tools left={left} right={right} />}
        </div>
        {left === null || right === null ? <Chooser left={left} /> : <Compared left={left} right={right} />}
      </div>
    </div>
  )
}

function Tools({ left, right }: { readonly left: string; readonly right: string }): ReactNode {
  return (
    <>
      <Button icon="swap" onClick={() => navigate(pathOfDiff(right, left), { replace: true })}>
        Swap
      </Button>
      <Button icon="link" onClick={() => copy(addressOf(pathOfDiff(left, right)), 'Link copied')}>
        Copy link
      </Button>
    </>
  )
}

function pathOfDiff(left: string, right: string): string {
  return `/diff/${encodeURIComponent(left)}/${encodeURIComponent(right)}`
}

/** Two lists of runs, for who comes without ids. */
function Chooser({ left }: { readonly left: string | null }): ReactNode {
  const runs = useRecentRuns().value ?? []
  const [first, setFirst] = useState(left ?? '')
  const [second, setSecond] = useState('')
  const known = left === null || runs.some(({ conversationId }) => conversationId === left)
  return (
    <form
      className="form chooser"
      aria-label="Runs to compare"
      onSubmit={(event) => {
        event.preventDefault()
        if (first !== '' && second !== '') navigate(pathOfDiff(first, second))
      }}
    >
      <RunChoice label="First run" runs={runs} value={first} extra={known ? null : left} onChange={setFirst} />
      <RunChoice label="Second run" runs={runs} value={second} extra={null} onChange={setSecond} />
      <div className="barfoot">
        <Button look="primary" type="submit" disabled={first === '' || second === '' || first === second}>
          Compare
        </Button>
      </div>
    </form>
  )
}

interface ChoiceProps {
  readonly label: string
  readonly runs: readonly RunInfo[]
  readonly value: string
  /** An id that the list does not have. */
  readonly extra: string | null
  readonly onChange: (id: string) => void
}

function RunChoice({ label, runs, value, extra, onChange }: ChoiceProps): ReactNode {
  const id = useId()
  return (
    <div className="field">
      <label className="name" htmlFor={id}>
        {label}
      </label>
      <select id={id} className="in" value={value} onChange={(event) => onChange(event.target.value)}>
        <option value="">Choose a run</option>
        {extra === null ? null : <option value={extra}>This conversation</option>}
        {runs.map(({ conversationId, title, agent, startedAt }) => (
          <option key={conversationId} value={conversationId}>
            {title ?? agent}
            {startedAt === null ? '' : `, ${moment(startedAt)}`}
          </option>
        ))}
      </select>
    </div>
  )
}

function Compared({ left, right }: { readonly left: string; readonly right: string }): ReactNode {
  const { value, error } = useRequest(`diff ${left} ${right}`, () => compareRuns(left, right))
  if (value === undefined) return error === null ? <SkeletonList label="Comparing" /> : <ProblemNote error={error} />
  return (
    <>
      <div className="ab">
        <SideCard letter="A" side={value.first} />
        <Icon name="compare" />
        <SideCard letter="B" side={value.second} />
      </div>
      <FigureRow comparison={value} />
      <Changes comparison={value} />
    </>
  )
}

function SideCard({ letter, side: { run, conversation } }: { readonly letter: 'A' | 'B'; readonly side: Side }) {
  return (
    <div className="card">
      <div className="row">
        <span className={`abtag abtag-${letter.toLowerCase()}`}>{letter}</span>
        <Link className="cut link" to={pathOfRun(run.conversationId)}>
          <b>{conversation.title ?? run.agent}</b>
        </Link>
        <IdButton id={run.runId} />
        <span className="grow" />
        <Pill state={shownRun(run)} />
      </div>
      <p className="meta">
        {run.agent}
        {run.startedAt === null ? '' : ` · ${moment(run.startedAt)}`}
      </p>
    </div>
  )
}

const MOST_ROWS = 200

function Changes({ comparison }: { readonly comparison: Comparison }): ReactNode {
  const [most, setMost] = useState(MOST_ROWS)
  const { changes, same } = comparison.diff
  if (changes.length === 0) return <p className="note note-plain">Both runs did the same, node by node.</p>
  const more = changes.length - most
  return (
    <>
      <table className="dl" aria-label="Differences">
        <thead>
          <tr className="dr dr-h">
            <th scope="col">Place</th>
            <th scope="col">A</th>
            <th scope="col">B</th>
            <th scope="col" className="num">
              B − A
            </th>
          </tr>
        </thead>
        <tbody>
          {changes.slice(0, most).map((change) => (
            <ChangeRow key={`${change.place} ${change.change}`} change={change} comparison={comparison} />
          ))}
        </tbody>
      </table>
      <p className="dl-g">{same === 1 ? '1 node is' : `${same} nodes are`} the same in both</p>
      {more > 0 ? (
        <Button onClick={() => setMost(most + MOST_ROWS)}>Show {Math.min(more, MOST_ROWS)} more</Button>
      ) : null}
    </>
  )
}
