import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { planQuestion } from '../../rules/delegation/question.ts'
import { TOOL_TO_ANSWER } from '../spawn.ts'
import type { RowToolEnd } from './row-tool.ts'

const MOST_CHARS = 8_000

/** Records a question to the host or to a person. The task then waits for the answer as a row and holds no worker. */
export async function askQuestion(
  run: NodeRun,
  question: unknown,
  { tool, to }: { readonly tool: string; readonly to: 'host' | 'person' },
): Promise<RowToolEnd> {
  const { home, node, work } = run
  const text = typeof question === 'string' ? question.trim() : ''
  if (text === '') return refusal(tool, 'question_is_required', 'question is required')
  if (text.length > MOST_CHARS) {
    return refusal(tool, 'question_is_too_long', `question must have at most ${MOST_CHARS} characters`)
  }
  await home.ledger.commit({
    kind: 'ask',
    rootId: node.rootId,
    plan: (draft) => planQuestion(draft, work.claim, { text, asked: to, hostCanAnswer: canAnswer(run) }),
  })
  return 'done'
}

/**
 * Tells whether the host has a tool to answer with. A host whose code lives in another process counts as having one.
 */
function canAnswer({ home, conversation }: NodeRun): boolean {
  const host = home.ledger.store.conversation(conversation.parentConversationId ?? '')
  const agent = host === undefined ? undefined : home.agents.of(host.id, host)
  return agent === undefined || agent.tools.has(TOOL_TO_ANSWER)
}

function refusal(tool: string, code: string, message: string) {
  return { code: `${tool}.${code}`, message, details: {} }
}
