import type { JsonSchema } from '../../base/schema.ts'

type Shown = JsonSchema & { readonly properties: object }

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

export const SUBAGENT_SCHEMA: Shown = {
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

export const DELEGATE_SCHEMA: Shown = {
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

export const AGENT_SCHEMA: Shown = {
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

export const LOAD_SCHEMA: Shown = {
  type: 'object',
  properties: {
    source: { type: 'string', description: 'Name of a source to read, or id of a task to wait for. Left out: a list' },
    cancel: { type: 'boolean', default: false, description: 'Stops the task' },
    peek: { type: 'boolean', default: false, description: 'Says what the task is doing, without waiting' },
  },
}
