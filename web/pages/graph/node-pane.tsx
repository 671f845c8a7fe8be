import type { ReactNode } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import type { NodeInfo } from '../../data/types.ts'
import { AgentPath, IdButton } from '../../parts/figures.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Link } from '../../parts/link.tsx'
import { Pill } from '../../parts/state.tsx'
import { ProblemNote } from '../../parts/states.tsx'
import { pathOfRun } from '../../window/router.ts'
import { shortText } from '../../words/exact.ts'
import { clock, span } from '../../words/format.ts'
import { jsonText } from '../../words/json-text.ts'
import { shownGraphNode } from './shapes.ts'

interface PaneProps {
  readonly rootId: string
  readonly nodeId: string | null
}

/** The node that was chosen, or how to read the graph. */
export function NodePane({ rootId, nodeId }: PaneProps): ReactNode {
  const key = nodeId === null ? null : `tree ${rootId} node ${nodeId}`
  const { value, error } = useRequest(key, () => client.nodeInfo(nodeId ?? ''))
  return (
    <aside className="gpane" aria-label="Node">
      {error === null ? null : <ProblemNote error={error} />}
      {value === undefined ? null : <NodeFacts node={value} />}
      <HowToRead />
    </aside>
  )
}

function NodeFacts({ node }: { readonly node: NodeInfo }): ReactNode {
  return (
    <>
      <section>
        <div className="row">
          <h2>Node</h2>
          <IdButton id={node.id} />
        </div>
        <div className="row">
          <Pill state={shownGraphNode(node)} />
          <b className="cut">{node.tool ?? node.kind.replaceAll('_', ' ')}</b>
        </div>
        <AgentPath path={node.path} />
        <Link className="btn btn-sm" to={pathOfRun(node.conversationId, '', node.id)}>
          <Icon name="thread" />
          Open in the thread
        </Link>
      </section>
      <Content title="Went in" text={inputOf(node)} />
      <Content title="Came out" text={outputOf(node)} />
      <Times node={node} />
    </>
  )
}

function inputOf({ input }: NodeInfo): string {
  if (input.call !== undefined) return jsonText(input.call.input, CUT + 1)
  return textOf(input.content ?? input.value ?? '')
}

function outputOf({ output, failure }: NodeInfo): string {
  if (failure !== null) return failure.message
  const calls = (output.calls ?? []).map(({ name }) => `calls ${name}`)
  return [textOf(output.content ?? output.value ?? ''), ...calls].filter((line) => line !== '').join('\n')
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : jsonText(value, CUT + 1)
}

const CUT = 2_000

function Content({ title, text }: { readonly title: string; readonly text: string }): ReactNode {
  if (text === '') return null
  return (
    <section>
      <h2>{title}</h2>
      <pre className="cmd">{shortText(text, CUT)}</pre>
    </section>
  )
}

function Times({ node: { createdAt, startedAt, endedAt, attempt } }: { readonly node: NodeInfo }): ReactNode {
  return (
    <section>
      <h2>Facts</h2>
      <dl className="kv">
        <dt>Began</dt>
        <dd>{startedAt === null ? 'not yet' : `${clock(startedAt)}, after ${span(startedAt - createdAt)}`}</dd>
        <dt>Took</dt>
        <dd>{startedAt === null || endedAt === null ? '—' : span(endedAt - startedAt)}</dd>
        <dt>Attempts</dt>
        <dd>{attempt}</dd>
      </dl>
    </section>
  )
}

const LINES = [
  ['e-after', 'comes after'],
  ['e-spawn', 'delegates to'],
  ['e-fork', 'forked from'],
] as const

function HowToRead(): ReactNode {
  return (
    <section>
      <h2>How to read it</h2>
      <ul className="glegend">
        {LINES.map(([name, words]) => (
          <li key={name}>
            <svg className={`gline ${name}`} viewBox="0 0 18 10" aria-hidden="true" focusable="false">
              <path d="M0 5h18" />
            </svg>
            {words}
          </li>
        ))}
        <li>
          <span className="gstack-sign" aria-hidden="true" />
          has earlier versions
        </li>
      </ul>
    </section>
  )
}
