import { type ReactNode, useEffect, useState } from 'react'
import { client } from '../data/client.ts'
import { useRequest } from '../data/request.ts'
import { useLook, useTreeUsage } from '../data/run.ts'
import { useMay } from '../data/server.ts'
import { useConversationTree, useOfTree } from '../data/tree.ts'
import type { TreeStore } from '../data/tree-store.ts'
import type { ConversationAnswer, RunTree, UsageStats } from '../data/types.ts'
import { Button, IconButton } from '../parts/button.tsx'
import { Money } from '../parts/figures.tsx'
import { Icon } from '../parts/icon.tsx'
import { Link } from '../parts/link.tsx'
import { Shape } from '../parts/state.tsx'
import { pathOfRun, usePlace } from '../window/router.ts'
import { activityOf } from '../words/activity.ts'
import { count, money } from '../words/format.ts'
import { ownUsd } from '../words/money.ts'
import { type Shown, shownRun, turnShown } from '../words/shown.ts'
import { countRuns } from './run-head.tsx'

interface TreePaneProps {
  readonly conversation: ConversationAnswer
  readonly store: TreeStore
  /** On narrower screens it is a sheet. */
  readonly isOpen: boolean
  readonly onClose: () => void
  readonly onFold: () => void
}

/** Who works for whom, what it costs, and what is known of the run. */
export function TreePane({ conversation, store, isOpen, onClose, onFold }: TreePaneProps): ReactNode {
  const run = turnShown(useConversationTree(conversation.id)?.runs ?? [])
  const usage = useTreeUsage(store)
  if (run === undefined) return <aside className="pane" aria-label="Who works for whom" />
  return (
    <aside className={`pane ${isOpen ? 'open' : ''}`} aria-label="Who works for whom">
      <div className="pane-h">
        <h2>Agents</h2>
        <span className="count">{countRuns(run)}</span>
        <span className="grow" />
        <Button look="quiet" isSmall onClick={onFold}>
          Fold all
        </Button>
        <IconButton className="narrow" icon="close" label="Close" onClick={onClose} />
      </div>
      <div className="tree">
        <Branch runs={[run]} conversationId={conversation.id} usage={usage} onGo={onClose} />
      </div>
      <MoneySection run={run} store={store} usage={usage} />
      <FactsSection conversation={conversation} runId={run.runId} />
      <ProofSection rootId={store.rootId} isOver={run.state === 'ended'} />
    </aside>
  )
}

interface BranchProps {
  readonly runs: readonly RunTree[]
  readonly conversationId: string
  readonly usage: UsageStats | undefined
  /** Somebody follows a link: a sheet closes. */
  readonly onGo: () => void
}

/** So many runs of one host are listed before somebody asks for the others. */
const FIRST = 60

function Branch({ runs, conversationId, usage, onGo }: BranchProps): ReactNode {
  const [most, setMost] = useState(FIRST)
  return (
    <ul>
      {runs.slice(0, most).map((run) => (
        <li key={run.runId}>
          <AgentLink run={run} conversationId={conversationId} usd={ownUsd(run.conversationId, usage)} onGo={onGo} />
          {run.children.length === 0 ? null : (
            <Branch runs={run.children} conversationId={conversationId} usage={usage} onGo={onGo} />
          )}
        </li>
      ))}
      {runs.length > most ? (
        <li>
          <Button look="quiet" isSmall onClick={() => setMost(most + FIRST * 4)}>
            {count(runs.length - most, 'more agent')}
          </Button>
        </li>
      ) : null}
    </ul>
  )
}

interface AgentLinkProps {
  readonly run: RunTree
  readonly conversationId: string
  readonly usd: number | null | undefined
  readonly onGo: () => void
}

function AgentLink({ run, conversationId, usd, onGo }: AgentLinkProps): ReactNode {
  const { fragment } = usePlace()
  const does = useOfTree((state) => activityOf(state, run.runId))
  const state: Shown = shownRun(run)
  return (
    <Link
      to={pathOfRun(conversationId, '', run.runId)}
      onClick={onGo}
      aria-current={fragment === run.runId ? 'true' : undefined}
    >
      <Shape state={state} />
      <span className="nm cut">{run.agent}</span>
      <span className="meta">
        <Money usd={usd} />
      </span>
      {does === '' ? null : <span className={`now cut ${state === 'needs' ? 'fg-needs' : ''}`}>{does}</span>}
    </Link>
  )
}

interface MoneySectionProps {
  readonly run: RunTree
  readonly store: TreeStore
  readonly usage: UsageStats | undefined
}

function MoneySection({ run, store, usage }: MoneySectionProps): ReactNode {
  const spend = useLook(store.rootId, run.runId)?.spend ?? null
  const usd = usage?.total.usd
  const most = spend?.limit.usd ?? null
  const share = most === null || usd == null ? 0 : Math.min(100, (usd / most) * 100)
  return (
    <section>
      <h2>Money</h2>
      <div className="row">
        <b>
          <Money usd={usd} />
        </b>
        {most === null ? <span className="dim">no limit</span> : <span className="dim">of {money(most)}</span>}
        <span className="grow" />
        {spend === null || spend.held.usd === 0 ? null : (
          <span className="meta">{money(spend.held.usd)} held back</span>
        )}
      </div>
      {most === null ? null : (
        <svg className="meter" viewBox="0 0 100 4" preserveAspectRatio="none" role="img">
          <title>{`${Math.round(share)} percent of the limit`}</title>
          <rect width={share} height="4" />
        </svg>
      )}
    </section>
  )
}

interface FactsSectionProps {
  readonly conversation: ConversationAnswer
  readonly runId: string
}

function FactsSection({ conversation, runId }: FactsSectionProps): ReactNode {
  const seq = useOfTree((state) => state.seq)
  const lanes = useConversationTree(conversation.id)?.lanes.length ?? 0
  const host = conversation.parentConversationId
  return (
    <section>
      <h2>Run</h2>
      <dl className="kv">
        <dt>Started by</dt>
        <dd>{conversation.owner ?? 'nobody known'}</dd>
        {host === null ? null : (
          <>
            <dt>{conversation.parentRunId === null ? 'Lane of' : 'Works for'}</dt>
            <dd>
              <Link
                className="link"
                to={pathOfRun(host, '', conversation.parentTaskId ?? conversation.forkedAt ?? undefined)}
              >
                {conversation.path.at(-2) ?? 'main'}
              </Link>
            </dd>
          </>
        )}
        <dt>Lanes</dt>
        <dd>{lanes === 0 ? 'main' : `main and ${lanes} more`}</dd>
        <dt>Events</dt>
        <dd>
          {seq},{' '}
          <Link className="link" to={pathOfRun(conversation.id, 'time')}>
            go back in time
          </Link>
        </dd>
        <dt>Run</dt>
        <dd className="mono">{runId}</dd>
        <dt>Conversation</dt>
        <dd className="mono">{conversation.id}</dd>
      </dl>
    </section>
  )
}

/** Trees that are over are compared with their hashes by themselves; others when somebody asks. */
function ProofSection({ rootId, isOver }: { readonly rootId: string; readonly isOver: boolean }): ReactNode {
  const mayAudit = useMay('audit')
  const [isAsked, setAsked] = useState(false)
  useEffect(() => {
    if (isOver) setAsked(true)
  }, [isOver])
  const key = mayAudit && isAsked ? `proof ${rootId} ${isOver}` : null
  const { value, error, isBusy } = useRequest(key, () => client.audit({ rootId, verify: true }))
  if (!mayAudit) return null
  if (value === undefined) {
    return (
      <section>
        <Button isSmall icon="seal" disabled={isBusy} onClick={() => setAsked(true)}>
          {isBusy ? 'Comparing with its hashes' : 'Verify the record'}
        </Button>
        {error === null ? null : <p className="err">It could not be verified.</p>}
      </section>
    )
  }
  const { findings, verified } = value
  return (
    <section>
      {findings.length === 0 ? (
        <p className="verified">
          <Icon name="seal" />
          {verified === null || verified.commits === 0
            ? 'Record checked. This store keeps no hashes.'
            : `Record verified up to commit ${verified.commits.toLocaleString('en')}`}
        </p>
      ) : (
        <p className="note note-failed">
          <Shape state="failed" isDecoration />
          <span>
            {count(findings.length, 'thing')} in the record {findings.length === 1 ? 'is' : 'are'} wrong:{' '}
            {findings[0]?.message}
          </span>
        </p>
      )}
    </section>
  )
}
