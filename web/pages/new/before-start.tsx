import type { ReactNode } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import type { AgentInfo, Explanation } from '../../data/types.ts'
import { Icon } from '../../parts/icon.tsx'
import { Shape } from '../../parts/state.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { money, span, tokens } from '../../words/format.ts'

/** More than these are not asked for one by one. */
const MOST_ASKED = 24

/** The cards beside the form: what the agent may do, and what a run can cost at most. */
export function BeforeStart({ agent }: { readonly agent: AgentInfo }): ReactNode {
  return (
    <aside className="form" aria-label="Before you start">
      <MayCard agent={agent} />
      <CostCard agent={agent} />
    </aside>
  )
}

function MayCard({ agent }: { readonly agent: AgentInfo }): ReactNode {
  const { value, error } = useRequest(`may ${agent.name}`, () => explanationsOf(agent))
  return (
    <div className="card">
      <div className="card-h">
        <h2>What it may do</h2>
      </div>
      <div className="pad">
        {value === undefined ? <Unexplained error={error} /> : <Verdicts agent={agent} explained={value} />}
      </div>
    </div>
  )
}

function Unexplained({ error }: { readonly error: unknown }): ReactNode {
  return error === null ? <span className="sk sk-3" /> : <ProblemNote error={error} />
}

function explanationsOf(agent: AgentInfo): Promise<readonly Explanation[]> {
  const requests = [...agent.tools.map((name) => `tool:${name}`), ...agent.subagents.map((name) => `agent:${name}`)]
  return Promise.all(requests.slice(0, MOST_ASKED).map((request) => client.explain(agent.name, request)))
}

interface VerdictsProps {
  readonly agent: AgentInfo
  readonly explained: readonly Explanation[]
}

function Verdicts({ agent, explained }: VerdictsProps): ReactNode {
  const by = (verdict: Explanation['verdict']) =>
    explained.filter((one) => one.verdict === verdict).map(({ request }) => request)
  const more = agent.tools.length + agent.subagents.length - explained.length
  return (
    <ul className="may">
      <Verdict icon={<Icon name="check" className="fg-done" />} words="Use these by itself" requests={by('allow')} />
      <Verdict
        icon={<Shape state="needs" isDecoration />}
        words="Use these if a person says yes each time"
        requests={by('ask')}
      />
      <Verdict icon={<Icon name="close" className="dim" />} words="Not use these" requests={by('deny')} />
      {explained.length === 0 ? (
        <li className="dim one">It has no tools and no subagents: it answers by itself.</li>
      ) : null}
      {more > 0 ? <li className="dim one">And {more} more, which are decided when they are asked for.</li> : null}
    </ul>
  )
}

interface VerdictProps {
  readonly icon: ReactNode
  readonly words: string
  readonly requests: readonly string[]
}

function Verdict({ icon, words, requests }: VerdictProps): ReactNode {
  if (requests.length === 0) return null
  return (
    <li>
      {icon}
      <span>
        {words}
        <br />
        <code>{requests.join(', ')}</code>
      </span>
    </li>
  )
}

function CostCard({ agent }: { readonly agent: AgentInfo }): ReactNode {
  const { budget, model } = agent
  return (
    <div className="card">
      <div className="card-h">
        <h2>What it can cost</h2>
        <span className="grow" />
        <span className="meta">{model ?? 'no model'}</span>
      </div>
      <div className="pad">
        <p>
          <span className="big">{ceilingOf(budget)}</span>{' '}
          <span className="dim">{isUnlimited(budget) ? '' : 'at most'}</span>
        </p>
        {isUnlimited(budget) ? (
          <p className="mid">Nobody set dollars or tokens for it. You can, below the form.</p>
        ) : null}
        <dl className="kv lim">
          <dt>Model calls</dt>
          <dd className="num">{budget.modelCalls.toLocaleString('en')}</dd>
          <dt>Tool calls</dt>
          <dd className="num">{budget.toolCalls.toLocaleString('en')}</dd>
          <dt>Subagents</dt>
          <dd className="num">
            {budget.children.toLocaleString('en')}, {budget.depth} deep
          </dd>
          <dt>Time</dt>
          <dd className="num">{span(budget.wallMs)}</dd>
        </dl>
      </div>
    </div>
  )
}

function isUnlimited({ usd, tokens: most }: AgentInfo['budget']): boolean {
  return usd === null && most === null
}

function ceilingOf({ usd, tokens: most }: AgentInfo['budget']): string {
  if (usd !== null) return money(usd)
  return most === null ? 'No limit' : `${tokens(most)} tokens`
}
