import type { Agent, AgentDefinition, Tools } from '../agent/definition/agent.ts'
import { anything, type OptionRules, readOptions, record, text } from '../base/options.ts'
import { fileTools } from '../tools/file-tools.ts'
import { agent } from './standalone.ts'

export interface GeneralTask {
  /** The task, with everything that the worker must know. */
  readonly task: string
  /** How to tell that it is done. */
  readonly success_criteria?: string | null
}

/** Settings of a general worker that replace its defaults. */
export type GeneralWorkerOptions = Partial<
  Pick<
    AgentDefinition<undefined, undefined>,
    'name' | 'description' | 'instructions' | 'model' | 'settings' | 'grant' | 'budget' | 'briefing'
  >
> & {
  /** Beside the file tools. */
  readonly tools?: Tools
}

const INPUT = {
  type: 'object',
  properties: {
    task: { type: 'string', minLength: 1, description: 'What is to be done, with all that is needed to do it.' },
    success_criteria: { type: ['string', 'null'], description: 'How to tell that it is done.' },
  },
  required: ['task'],
} as const

const INSTRUCTIONS = `You do one task that another agent has delegated to you. The task is the last message; "success_criteria", where it is given, says when it is done.
Work with your tools and stay within what they allow: what is denied stays denied, so do not look for another way to it. Nobody answers questions: where something is unclear, choose the plainest reading and say so.
End with one answer: what you did, what came of it, and what is missing. It is all that the other agent sees of your work.`

const OPTIONS: OptionRules<GeneralWorkerOptions> = {
  name: text,
  description: text,
  instructions: text,
  model: anything,
  settings: record,
  grant: record,
  budget: record,
  briefing: anything,
  tools: record,
}

/**
 * An agent for any task: it works with the runtime's files, as far as its host passes them on, and its results name the
 * tools it used (`response_metadata.tool_trace`). For `subagents` of others: `subagents: { work: generalWorker() }`.
 */
export function generalWorker(given: GeneralWorkerOptions = {}): Agent<GeneralTask, null> {
  const { tools = {}, ...options } = readOptions('generalWorker()', given, OPTIONS)
  return agent({
    name: 'worker',
    description: 'Does one task on its own, with files where they are allowed, and reports what it did.',
    instructions: INSTRUCTIONS,
    input: INPUT,
    grant: { use: ['tool:*', 'agent:*', 'model:*', 'file.*:**'] },
    budget: { modelCalls: 12 },
    toolTrace: true,
    ...options,
    tools: { ...fileTools(), ...tools },
  }) as unknown as Agent<GeneralTask, null>
}
