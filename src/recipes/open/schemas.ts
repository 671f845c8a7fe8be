import type { JsonSchema } from '../../core/base/schema/schema.ts'
import type { Surface } from '../inline/spec.ts'

type ShownSchema = JsonSchema & { readonly properties: object }

const TEXT = { type: 'string' } as const
const EXTENSIONS = {
  type: 'array',
  items: TEXT,
  description: 'Names of the extensions it may use. Left out: all of yours; [] for none',
} as const
const IMAGES = {
  type: 'array',
  items: {
    type: 'object',
    properties: { data: { type: 'string', description: 'base64' }, mime_type: TEXT },
    required: ['data', 'mime_type'],
  },
  description: 'Images it is shown, after the text',
} as const
const PROVIDER = { type: 'string', description: 'Whose model it uses' } as const
const MODEL = { type: 'string', description: 'Which model it uses' } as const
const TEMPERATURE = { type: 'number' } as const
const TURNS = { type: 'integer', minimum: 1, description: 'How many answers it has' } as const

export const SUBAGENT_SCHEMA: ShownSchema = {
  type: 'object',
  properties: {
    instructions: { type: 'string', description: 'The task, or what is added to the subrecipe' },
    subrecipe: { type: 'string', description: 'Name of a subrecipe' },
    parameters: { type: 'object', additionalProperties: true, description: 'Values for the subrecipe, by key' },
    extensions: EXTENSIONS,
    settings: {
      type: 'object',
      properties: { provider: PROVIDER, model: MODEL, temperature: TEMPERATURE, max_turns: TURNS },
    },
    summary: { type: 'boolean', default: true, description: 'Only its last message. Default true' },
    images: IMAGES,
  },
}

export const DELEGATE_SCHEMA: ShownSchema = {
  type: 'object',
  properties: {
    instructions: { type: 'string', description: 'The task, or what is added to the source' },
    source: { type: 'string', description: 'Name of a subrecipe, recipe, agent or skill' },
    parameters: { type: 'object', additionalProperties: true, description: 'Values for the source, by key' },
    extensions: EXTENSIONS,
    provider: PROVIDER,
    model: MODEL,
    temperature: TEMPERATURE,
    max_turns: TURNS,
    context: { type: 'string', description: 'Reference material, told apart from the task' },
    async: { type: 'boolean', default: false, description: 'Work in the background. Default false' },
  },
}

export const AGENT_SCHEMA: ShownSchema = {
  type: 'object',
  properties: {
    description: { type: 'string', description: 'The task in 3-5 words' },
    prompt: { type: 'string', description: 'The task, with all that must be known' },
    subagent_type: { type: 'string', description: 'Which kind of agent' },
    model: MODEL,
    run_in_background: { type: 'boolean' },
    name: { type: 'string', description: 'What it is called' },
    team_name: TEXT,
    mode: TEXT,
    isolation: { type: 'string', enum: ['worktree', 'remote'] },
    cwd: { type: 'string', description: 'Where it works: an absolute path, such as /workspace/app' },
    images: IMAGES,
  },
  required: ['description', 'prompt'],
  additionalProperties: false,
}

export const LOAD_SCHEMA: ShownSchema = {
  type: 'object',
  properties: {
    source: { type: 'string', description: 'Name of a source to read, or id of a task to wait for. Left out: a list' },
    cancel: { type: 'boolean', default: false, description: 'Stops the task' },
    peek: { type: 'boolean', default: false, description: 'Says what the task is doing, without waiting' },
  },
}

const PARALLEL =
  'For independent work put several calls into one message: they run at the same time, and their results come together.'

const FIXED: Readonly<Record<Surface, string>> = {
  subagent: `Hands a task to a subagent, which works on its own in a conversation of its own and reports back.
Modes:
1. Ad-hoc: "instructions" say what to do, with all that must be known; the subagent sees nothing else of this conversation.
2. Predefined: "subrecipe" names one of the subrecipes below; "parameters" give its values.
3. Augmented: both; the instructions are added to what the subrecipe says.
"extensions" limits its tools ([] is none), "settings" chooses its model. With "summary": false you get all it said and found instead of its last message.
${PARALLEL}`,
  delegate: `Hands a task to a subagent, which works on its own and reports back.
"instructions" say what to do (Ad-hoc); "source" names a subrecipe, recipe, agent or skill; with both, the instructions are added to it.
With "async": true it works in the background: you get its id at once, and load(source: "<id>") waits for its result.
${PARALLEL}`,
  Agent: `Starts a new agent that does a task on its own and reports back in one message (Ad-hoc, or one of the types below as "subagent_type").
${PARALLEL}`,
}

/** Returns the fixed part of the description of a tool that starts subagents. */
export function fixedDescription(surface: Surface): string {
  return FIXED[surface]
}
