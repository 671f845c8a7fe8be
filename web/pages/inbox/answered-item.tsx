// Something that needed a person and was answered while the page was open: it stays as a line that says who, how and when.

import { type ReactNode, useEffect, useRef, useState } from 'react'
import { client } from '../../data/client.ts'
import { useRequest } from '../../data/request.ts'
import type { InboxItem } from '../../data/types.ts'
import { wantedOf } from '../../panes/ask/facts.ts'
import { AgentPath } from '../../parts/figures.tsx'
import { Link } from '../../parts/link.tsx'
import { Shape } from '../../parts/state.tsx'
import { pathOfRun } from '../../window/router.ts'
import { exactText, shortText } from '../../words/exact.ts'
import { clock } from '../../words/format.ts'

type Asking = Extract<InboxItem, { readonly type: 'approval' | 'question' }>

const MOST_KEPT = 5
/** The line of an answer is cut there: its run has all of it. */
const MOST_SHOWN = 300

/** The requests and questions that were listed, and are no more: the newest first. */
export function useAnswered(items: readonly InboxItem[] | undefined): readonly Asking[] {
  const before = useRef<readonly Asking[]>([])
  const [answered, setAnswered] = useState<readonly Asking[]>([])
  useEffect(() => {
    if (items === undefined) return
    const now = items.filter(isAsking)
    const gone = before.current.filter((item) => !now.some((one) => seenOf(one) === seenOf(item)))
    before.current = now
    if (gone.length > 0) setAnswered((known) => [...gone, ...known].slice(0, MOST_KEPT))
  }, [items])
  return answered
}

function isAsking(item: InboxItem): item is Asking {
  return item.type === 'approval' || item.type === 'question'
}

export function seenOf(item: Asking): string {
  return `${item.nodeId} ${item.type === 'approval' ? item.approval.seen : item.question.seen}`
}

export function AnsweredItem({ item }: { readonly item: Asking }): ReactNode {
  const answer = useRequest(`answered ${seenOf(item)}`, () => answerOf(item)).value ?? undefined
  const isDenied = answer?.type === 'approval-answer' && !answer.allowed
  return (
    <li className="item" data-nav tabIndex={-1}>
      <Shape state={isDenied ? 'cancelled' : 'done'} />
      <div className="grow">
        <div className="item-t">
          <Link to={pathOfRun(item.rootId, '', item.nodeId ?? undefined)} className="cut">
            {answer === undefined ? 'It was answered' : shortText(wordsOf(item, answer), MOST_SHOWN)}
          </Link>
        </div>
        <div className="item-s">
          <AgentPath path={item.path} />
        </div>
      </div>
      <div className="item-a">
        <span className="meta">{answer === undefined ? '' : clock(answer.at)}</span>
      </div>
    </li>
  )
}

type Answer = NonNullable<Awaited<ReturnType<typeof answerOf>>>

/** The last answer that the node got. */
async function answerOf({ runId, nodeId }: Asking) {
  let found: AnswerEvent | null = null
  for (let after = 0; ; ) {
    const page = await client.eventPage(runId, { types: ['approval-answer', 'answer'], after, limit: 500 })
    for (const event of page.events) if (event.nodeId === nodeId && isAnswer(event)) found = event
    if (typeof page.next !== 'number') return found
    after = page.next
  }
}

type Event = Awaited<ReturnType<typeof client.eventPage>>['events'][number]
type AnswerEvent = Extract<Event, { readonly type: 'approval-answer' | 'answer' }>

function isAnswer(event: Event): event is AnswerEvent {
  return event.type === 'approval-answer' || event.type === 'answer'
}

function wordsOf(item: Asking, answer: Answer): string {
  const who = exactText(answer.by)
  if (answer.type === 'answer') return `${who}: answered “${answer.text}”`
  const what = item.type === 'approval' ? wantedOf(item.approval.request) : 'it'
  if (answer.allowed) return `${who}: allowed ${what} ${answer.always ? 'from now on' : 'once'}`
  return `${who}: denied ${what}${answer.reason === null ? '' : `: “${answer.reason}”`}`
}
