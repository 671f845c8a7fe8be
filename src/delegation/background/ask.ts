import type { NodeRun } from '../../agent/hooks/node-run.ts'
import { type NoOptions, readOptions } from '../../base/options.ts'
import type { Tool } from '../../tool/tool.ts'
import { rowTool } from './row-tool.ts'

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
    inputSchema: {
      type: 'object',
      properties: {
        question: { type: 'string', description: 'The question, with all that must be known to answer it' },
      },
      required: ['question'],
      additionalProperties: false,
    },
    startsChild: false,
    operation: async (run: NodeRun, { question }) =>
      (await import('./ask-question.ts')).askQuestion(run, question, { tool: name, to }),
  })
}
