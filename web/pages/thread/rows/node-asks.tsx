import type { TreeAsked, TreeNode, TreeWord } from 'legate/client'
import type { ReactNode } from 'react'
import { speaker } from '../../../data/format.ts'
import { useOfTree, useTreeSource } from '../../../data/tree.ts'
import { ApprovalCard } from '../../../panes/ask/approval-card.tsx'
import { wantedOf } from '../../../panes/ask/facts.ts'
import { QuestionCard } from '../../../panes/ask/question-card.tsx'
import { SettleButtons } from '../../../panes/ask/settle-buttons.tsx'
import { Clock } from '../../../parts/figures.tsx'
import { Shape } from '../../../parts/state.tsx'

/** What a node asks of people, and what they said: the answer stands beside the question. */
export function NodeAsks({ node }: { readonly node: TreeNode }): ReactNode {
  const { isPast } = useTreeSource()
  const approval = useOfTree((state) => state.approvals.get(node.nodeId))
  const question = useOfTree((state) => state.questions.get(node.nodeId))
  const answered = node.asked.filter(({ answer }) => answer !== null)
  const isOpenDoubt = node.state === 'uncertain' && !answered.some(isSettled)
  if (approval === undefined && question === undefined && answered.length === 0 && !isOpenDoubt) return null
  return (
    <div className="call-b flush">
      {answered.map((asked) => (
        <AnsweredLine key={`${asked.since} ${asked.text}`} asked={asked} />
      ))}
      {approval === undefined || isPast ? null : <ApprovalCard key={approval.seen} approval={approval} />}
      {question === undefined || isPast ? null : <QuestionCard key={question.seen} question={question} />}
      {isPast && (approval !== undefined || question !== undefined) ? (
        <p className="ask-done">
          <Shape state="needs" isDecoration />
          Waited for a person at this moment
        </p>
      ) : null}
      {isOpenDoubt && !isPast ? (
        <div className="note note-uncertain wrap">
          <Shape state="uncertain" isDecoration />
          <span className="grow">
            {node.trouble ?? 'It may or may not have happened.'} Look at the far side, then decide.
          </span>
          <SettleButtons nodeId={node.nodeId} />
        </div>
      ) : null}
    </div>
  )
}

function isSettled({ text }: TreeAsked): boolean {
  return text === 'What became of it?'
}

/** Who answered, where and when. */
function AnsweredLine({ asked }: { readonly asked: TreeAsked }): ReactNode {
  const { answer } = asked
  if (answer === null) return null
  return (
    <p className="ask-done">
      <Shape state={answer.allowed === false ? 'cancelled' : 'done'} isDecoration />
      <span className="cut">
        <b>{answer.by.replace(/@.*$/, '')}</b> {wordsOf(asked, answer)}
        {answer.by.includes('@') ? `, ${speaker(answer.by).split(', ').slice(1).join(', ')}` : ''}
      </span>
      <span className="meta">
        <Clock at={answer.at} />
      </span>
    </p>
  )
}

function wordsOf({ request, text: question }: TreeAsked, { allowed, text, always, edited }: TreeWord): string {
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
