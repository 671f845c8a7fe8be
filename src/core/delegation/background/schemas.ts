import type { BackgroundSpec } from './options.ts'

const CHILD = {
  type: 'string',
  description: 'child_conversation_id of the subagent, as subagent_spawn gave it',
} as const

function spawnFields({ profiles, agents, agent }: BackgroundSpec) {
  const names = [...agents.keys()]
  const which = names.length === 0 ? '' : ` ${agent === undefined ? 'One of' : 'Special ones:'} ${names.join(', ')}.`
  return {
    name: { type: 'string', description: `What the subagent is called.${which}` },
    prompt: { type: 'string', description: 'What it shall do: everything it must know, it sees nothing else of this' },
    policy_profile: { type: 'string', enum: profiles, description: 'What it may use at most. Default: as you' },
    context_turns: { type: 'integer', minimum: 1, maximum: 1000, description: 'Rounds of its own it is shown' },
    title: { type: 'string', description: 'Of its conversation, for people' },
  } as const
}

const TIMEOUT = {
  type: 'integer',
  minimum: 1,
  maximum: 86_400_000,
  description: 'How long this call waits at most, in ms. The subagent goes on after it',
} as const

function object(properties: object, required: readonly string[]) {
  return { type: 'object', properties, required, additionalProperties: false } as const
}

/** Builds the input schema of each tool, as a model sees it. */
export function schemasOf(spec: BackgroundSpec) {
  const spawn = spawnFields(spec)
  return {
    subagent_spawn: object(spawn, ['name', 'prompt']),
    subagent_run: object({ ...spawn, timeout_ms: TIMEOUT }, ['name', 'prompt']),
    subagent_poll: object(
      {
        child_conversation_id: CHILD,
        limit_turns: { type: 'integer', minimum: 1, maximum: 50, description: 'Rounds to show. Default 10' },
      },
      ['child_conversation_id'],
    ),
    subagent_wait: object(
      {
        ids: { type: 'array', items: CHILD, maxItems: 100, description: 'Whom to wait for. Default: all' },
        join: {
          anyOf: [
            { type: 'string', enum: ['all', 'any', 'settled'] },
            { type: 'integer', minimum: 1 },
          ],
          description: 'all or so many must complete, any one must, or all must have ended in whatever way (settled)',
        },
        losers: { type: 'string', enum: ['leave', 'cancel'], description: 'What happens to those not needed' },
        timeout_ms: TIMEOUT,
      },
      [],
    ),
    subagent_send: object(
      { child_conversation_id: CHILD, message: { type: 'string', description: 'What it is told, or your answer' } },
      ['child_conversation_id', 'message'],
    ),
    subagent_result: object(
      {
        child_conversation_id: CHILD,
        offset: { type: 'integer', minimum: 0, description: 'Where to read on: next_offset of the page before' },
      },
      ['child_conversation_id'],
    ),
    subagent_cancel: object({ child_conversation_id: CHILD, reason: { type: 'string' } }, ['child_conversation_id']),
    subagent_list: object({}, []),
  } as const
}

export const DESCRIPTIONS = {
  subagent_spawn:
    'Starts a subagent in a conversation of its own and returns at once. You are told when it ends; wait for it, or poll it, with its child_conversation_id.',
  subagent_run: 'Starts a subagent and waits for its answer. If it takes longer than timeout_ms it goes on by itself.',
  subagent_poll: 'Says what a subagent is doing, and shows the last it said. To wait for it, use subagent_wait.',
  subagent_wait: 'Waits for subagents. It costs nothing while they work. Its timeout ends the wait, not the subagents.',
  subagent_send:
    'Tells a subagent something more, or answers what it asked you. It is heard after what it is doing now.',
  subagent_result: 'Reads the whole answer of a subagent that ended, page by page.',
  subagent_cancel: 'Stops a subagent and all it started, and says what it had.',
  subagent_list: 'Lists the subagents that this conversation has started, the newest first.',
} as const
