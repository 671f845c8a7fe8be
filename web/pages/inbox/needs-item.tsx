// One thing that needs a person: what it is, since when, and the buttons that help.

import { type ReactNode, useState } from 'react'
import { useConnection } from '../../data/feed.ts'
import { reload } from '../../data/request.ts'
import { retryRun } from '../../data/retry.ts'
import { useMay } from '../../data/server.ts'
import type { InboxItem } from '../../data/types.ts'
import { ApprovalCard, Wanted } from '../../panes/ask/approval-card.tsx'
import { CallText, useShownCall } from '../../panes/ask/arguments.tsx'
import { QuestionCard } from '../../panes/ask/question-card.tsx'
import { SettleButtons } from '../../panes/ask/settle-buttons.tsx'
import { Waited } from '../../panes/ask/waited.tsx'
import { Button, copy } from '../../parts/button.tsx'
import { AgentPath, Span } from '../../parts/figures.tsx'
import { Link } from '../../parts/link.tsx'
import { Shape } from '../../parts/state.tsx'
import { useTask } from '../../parts/task.ts'
import { putAway } from '../../window/away.ts'
import { pathOfRun } from '../../window/router.ts'
import { exactText, shortText } from '../../words/exact.ts'
import { moment, shortId } from '../../words/format.ts'
import { shownItem, statusWords } from '../../words/shown.ts'

interface NeedsItemProps {
  readonly item: InboxItem
  /** The title of its run. */
  readonly title: string | null
  /** The first one is open, and what was open stays so. */
  readonly isFirst: boolean
  /** It needs nobody any more, and stays until whoever is at it has left. */
  readonly isGone: boolean
}

export function NeedsItem({ item, title, isFirst, isGone }: NeedsItemProps): ReactNode {
  const [isOpened, setOpened] = useState<boolean | null>(null)
  if (isFirst && isOpened === null) setOpened(true)
  const isOpen = isOpened === true
  const to = pathOfRun(item.rootId, '', item.nodeId ?? undefined)
  const canOpen = item.type === 'approval' || item.type === 'question'
  const call = useShownCall(item.type === 'uncertain' ? item.input : null)
  return (
    <li
      className={`item ${isOpen && canOpen ? 'is-sel' : ''} ${isGone ? 'is-gone' : ''}`}
      data-nav
      data-stay={keyOfItem(item)}
      tabIndex={-1}
    >
      <Shape state={shownItem(item)} />
      <div className="grow">
        <div className="item-t">
          <Link to={to} className={isOpen && canOpen ? 'whole' : 'cut'}>
            <ItemWords item={item} title={title} />
          </Link>
        </div>
        <SecondLine item={item} title={title} />
      </div>
      <div className="item-a">
        {isGone ? <span className="meta">gone</span> : <ItemTime item={item} />}
        {canOpen ? (
          <OpenButton item={item} isOpen={isOpen} onToggle={() => setOpened(!isOpen)} />
        ) : (
          <ItemButtons item={item} isWhole={call.isWhole} isGone={isGone} />
        )}
      </div>
      {isOpen ? <ItemCard item={item} isGone={isGone} /> : null}
      {item.type === 'uncertain' ? (
        <div className="item-b">
          <CallText call={call} />
        </div>
      ) : null}
    </li>
  )
}

function SecondLine({ item, title }: Pick<NeedsItemProps, 'item' | 'title'>): ReactNode {
  return (
    <div className="item-s">
      {item.path.length > 1 ? <AgentPath path={item.path} /> : null}
      {item.path.length > 1 ? <span aria-hidden="true">·</span> : null}
      <span className="cut">{shortText(secondLine(item, title), MOST_WORDS)}</span>
    </div>
  )
}

/** Names an item: another request of the same node is another item. */
export function keyOfItem(item: InboxItem): string {
  const { type, runId, nodeId } = item
  const seen = type === 'approval' ? item.approval.seen : type === 'question' ? item.question.seen : ''
  return `${type} ${runId} ${nodeId ?? ''} ${seen}`
}

/** Lines of lists are cut there: what is opened has all of it. */
const MOST_WORDS = 300

interface OpenButtonProps {
  readonly item: InboxItem
  readonly isOpen: boolean
  readonly onToggle: () => void
}

function OpenButton({ item, isOpen, onToggle }: OpenButtonProps): ReactNode {
  const words = item.type === 'approval' ? 'Read and answer' : 'Answer'
  return (
    <Button isSmall look={isOpen ? 'quiet' : 'plain'} aria-expanded={isOpen} onClick={onToggle}>
      {isOpen ? 'Fold' : words}
    </Button>
  )
}

function ItemCard({ item, isGone }: Pick<NeedsItemProps, 'item' | 'isGone'>): ReactNode {
  if (item.type !== 'approval' && item.type !== 'question') return null
  return (
    <div className="item-b">
      {item.type === 'approval' ? (
        <ApprovalCard key={item.approval.seen} approval={item.approval} isFlat isGone={isGone} />
      ) : (
        <QuestionCard key={item.question.seen} question={item.question} isFlat isGone={isGone} />
      )}
    </div>
  )
}

function ItemWords({ item, title }: Pick<NeedsItemProps, 'item' | 'title'>): ReactNode {
  const who = <b>{item.agent}</b>
  const what = title === null ? `the run ${shortId(item.runId)}` : shortText(title, MOST_WORDS)
  switch (item.type) {
    case 'approval':
      return (
        <>
          {who} wants <Wanted request={item.approval.request} />
        </>
      )
    case 'question':
      return (
        <>
          {who} asks: {shortText(item.question.text, MOST_WORDS)}
        </>
      )
    case 'uncertain':
      return (
        <>
          {who}: <code>{exactText(item.tool)}</code> may or may not have happened
        </>
      )
    case 'failed':
      return (
        <>
          {who}: {what} {item.status === 'failed' ? 'failed' : `ended: ${statusWords(item.status)}`}
        </>
      )
    case 'no-worker':
      return (
        <>
          {who}: Nobody works on {what}
        </>
      )
    default:
      return (
        <>
          {who}: {what} is stuck
        </>
      )
  }
}

function secondLine(item: InboxItem, title: string | null): string {
  if (item.type === 'approval' || item.type === 'question') return title ?? `Run ${shortId(item.runId)}`
  if (item.type === 'uncertain') return `${item.text} Look at the far side, then decide.`
  return item.text
}

function ItemTime({ item }: { readonly item: InboxItem }): ReactNode {
  if (item.type === 'approval')
    return <Waited since={item.since} expiresAt={item.approval.expiresAt} then="it is denied" />
  if (item.type === 'question')
    return <Waited since={item.since} expiresAt={item.question.expiresAt} then="it goes on without an answer" />
  return (
    <span className="meta">{item.type === 'failed' ? moment(item.since) : <Span from={item.since} to={null} />}</span>
  )
}

interface ItemButtonsProps {
  readonly item: InboxItem
  readonly isWhole: boolean
  readonly isGone: boolean
}

function ItemButtons({ item, isWhole, isGone }: ItemButtonsProps): ReactNode {
  if (item.type === 'uncertain')
    return <SettleButtons nodeId={item.nodeId ?? ''} seen={item.seen} isWhole={isWhole} isGone={isGone} />
  if (item.type === 'failed') return <FailedButtons runId={item.runId} />
  const command = item.type === 'no-worker' ? `legate resume ${shortId(item.runId)}` : 'legate audit'
  return (
    <Button isSmall icon="copy" onClick={() => copy(command, `Copied: ${command}`)}>
      {item.type === 'no-worker' ? 'legate resume' : 'legate audit'}
    </Button>
  )
}

function FailedButtons({ runId }: { readonly runId: string }): ReactNode {
  const task = useTask()
  const mayRetry = useMay('history')
  const isLive = useConnection().kind === 'live'
  const retry = () => {
    void task.run(() => retryRun(runId), 'Only what failed is done again').then(() => reload('lists '))
  }
  return (
    <>
      {mayRetry ? (
        <Button isSmall disabled={task.isBusy || !isLive} onClick={retry}>
          Retry
        </Button>
      ) : null}
      <Button isSmall look="quiet" onClick={() => putAway(runId)}>
        Put away
      </Button>
    </>
  )
}
