import type { TreeApproval, TreeAsked, TreeDecision, TreeNode, TreeQuestion } from 'legate/client'
import type { ReactNode } from 'react'
import { client } from '../../../data/client.ts'
import { useRequest } from '../../../data/request.ts'
import { useOfTree, useTreeSource } from '../../../data/tree.ts'
import { ApprovalCard } from '../../../panes/ask/approval-card.tsx'
import { CallText, useShownCall } from '../../../panes/ask/arguments.tsx'
import { wantedOf } from '../../../panes/ask/facts.ts'
import { QuestionCard } from '../../../panes/ask/question-card.tsx'
import { SettleButtons } from '../../../panes/ask/settle-buttons.tsx'
import { Boundary } from '../../../parts/boundary.tsx'
import { Clock } from '../../../parts/figures.tsx'
import { Shape } from '../../../parts/state.tsx'
import { ProblemNote } from '../../../parts/states.tsx'
import { useStaying } from '../../../window/present.ts'
import { exactText, shortText } from '../../../words/exact.ts'

/** What a node asks of people, and what they said: the answer stands beside the question. */
export function NodeAsks({ node }: { readonly node: TreeNode }): ReactNode {
  const { isPast } = useTreeSource()
  const approval = useOfTree((state) => state.approvals.get(node.nodeId))
  const question = useOfTree((state) => state.questions.get(node.nodeId))
  const asks = useStaying<Ask>(isPast ? [] : asksOf(approval, question), seenOf)
  const answered = node.asked.filter(({ answer }) => answer !== null)
  const doubts = useStaying(node.state === 'uncertain' && !answered.some(isSettled) && !isPast ? [node] : [], doubtOf)
  const isWaiting = approval !== undefined || question !== undefined
  if (!isWaiting && asks.items.length + answered.length + doubts.items.length === 0) return null
  return (
    <div className="call-b flush">
      {asks.items.map((ask) =>
        'request' in ask ? (
          <Boundary key={ask.seen} what="This request">
            <ApprovalCard approval={ask} isGone={asks.isGone(ask)} />
          </Boundary>
        ) : (
          <Boundary key={ask.seen} what="This question">
            <QuestionCard question={ask} isGone={asks.isGone(ask)} />
          </Boundary>
        ),
      )}
      {answered.map((asked) => (
        <AnsweredLine key={`${asked.since} ${asked.text}`} asked={asked} />
      ))}
      {isPast && isWaiting ? (
        <p className="ask-done">
          <Shape state="needs" isDecoration />
          Waited for a person at this moment
        </p>
      ) : null}
      {doubts.items.map((one) => (
        <Boundary key={one.nodeId} what="This call">
          <Doubt node={one} isGone={doubts.isGone(one)} />
        </Boundary>
      ))}
    </div>
  )
}

type Ask = TreeApproval | TreeQuestion

function asksOf(...asks: readonly (Ask | undefined)[]): Ask[] {
  return asks.filter((ask) => ask !== undefined)
}

function seenOf({ seen }: Ask): string {
  return seen
}

function doubtOf({ nodeId }: TreeNode): string {
  return `doubt ${nodeId}`
}

/** A call whose effect is uncertain: all of it, because a person may have it run again. */
function Doubt({ node, isGone }: { readonly node: TreeNode; readonly isGone: boolean }): ReactNode {
  const { nodeId, trouble } = node
  const asked = useRequest(`doubt ${nodeId}`, () => client.nodeInfo(nodeId))
  const shown = asked.value
  const call = useShownCall(shown === undefined ? null : shown.input.call?.input)
  return (
    <div className="note note-uncertain stack" data-stay={doubtOf(node)}>
      <p className="row">
        <Shape state="uncertain" isDecoration />
        <span className="grow">
          {shortText(trouble ?? 'It may or may not have happened.', MOST_TROUBLE)} Look at the far side, then decide.
        </span>
      </p>
      {shown === undefined ? null : <CallText call={call} />}
      {asked.error === null ? null : <ProblemNote error={asked.error} />}
      <SettleButtons nodeId={nodeId} seen={shown?.seen ?? undefined} isWhole={call.isWhole} isGone={isGone} />
    </div>
  )
}

const MOST_TROUBLE = 2_000

function isSettled({ text }: TreeAsked): boolean {
  return text === 'What became of it?'
}

/** Who answered, where and when. */
function AnsweredLine({ asked }: { readonly asked: TreeAsked }): ReactNode {
  const { answer } = asked
  if (answer === null) return null
  const words = shortText(wordsOf(asked, answer), MOST_TROUBLE)
  return (
    <p className="ask-done">
      <Shape state={answer.allowed === false ? 'cancelled' : 'done'} isDecoration />
      <span className="cut" title={`${exactText(answer.by)} ${words}`}>
        <b>{exactText(answer.by)}</b> {words}
      </span>
      <span className="meta">
        <Clock at={answer.at} />
      </span>
    </p>
  )
}

function wordsOf({ request, text: question }: TreeAsked, { allowed, text, always, edited }: TreeDecision): string {
  if (allowed === null)
    return question === 'What became of it?' ? `settled it: ${SETTLED[text ?? ''] ?? text}` : `answered “${text}”`
  const what = wantedOf(request ?? '')
  if (!allowed) return `denied ${what}${text === null || text === '' ? '' : `: “${text}”`}`
  return `allowed ${what} ${always ? 'from now on' : 'once'}${edited ? ', with other arguments' : ''}`
}

const SETTLED: Readonly<Record<string, string>> = {
  happened: 'it happened',
  not_happened: 'it did not happen',
  left: 'left as it is',
}
