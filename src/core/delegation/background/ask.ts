import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { type NoOptions, readOptions } from '../../base/options.ts'
import type { Tool } from '../../tool/tool.ts'
import { type RowToolEnd, rowTool } from './row-tool.ts'

/**
 * Makes the tools an agent asks questions with: `ask_host` asks the agent that delegated to it, or a person if no host
 * can reply; `ask_person` asks a person. The call waits for the answer as a row. `runtime.questions()` lists the
 * questions that wait for people.
 */
export function askTools(options: NoOptions = {}): { readonly ask_host: Tool; readonly ask_person: Tool } {
  readOptions('askTools()', options, {})
  return {
    ask_host: askTool('ask_host', 'host', HOST),
    ask_person: askTool('ask_person', 'person', PERSON),
  }
}

const HOST =
  'Asks whoever gave you this task a question and waits for the answer. Only for what you cannot find out yourself.'
const PERSON = 'Asks a person a question and waits for the answer. Only for what you cannot find out yourself.'

function askTool(name: string, to: 'host' | 'person', description: string): Tool {
  return rowTool({
    name,
    description,
    input: {
      type: 'object',
      properties: {
        question: { type: 'string', description: 'The question, with all that must be known to answer it' },
      },
      required: ['question'],
      additionalProperties: false,
    },
    startsChild: false,
    operation: (run: NodeRun, { question }) => askQuestion(run, question, { tool: name, to }),
  })
}

const MOST_CHARS = 8_000

/** Records a question to the host or to a person. The task then waits for the answer as a row and holds no worker. */
async function askQuestion(
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
  const { planQuestion } = await import('../../rules/delegation/question.ts')
  const { TOOL_TO_ANSWER } = await import('../spawn.ts')
  const hostCanAnswer = hostHas(run, TOOL_TO_ANSWER)
  await home.ledger.commit({
    kind: 'ask',
    rootId: node.rootId,
    plan: (draft) => planQuestion(draft, work.claim, { text, asked: to, hostCanAnswer }),
  })
  return 'done'
}

/**
 * Tells whether the host has a tool to answer with. A host whose code lives in another process counts as having one.
 */
function hostHas({ tree, home, conversation }: NodeRun, tool: string): boolean {
  const host = tree.conversation(conversation.parentConversationId ?? '')
  const agent = host === undefined ? undefined : home.agents.of(tree, host.id, host)
  return agent === undefined || agent.tools.has(tool)
}

function refusal(tool: string, code: string, message: string) {
  return { code: `${tool}.${code}`, message, details: {} }
}
