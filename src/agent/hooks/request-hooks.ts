import { DefinitionError } from '../../base/error.ts'
import type { ModelRequest } from '../../model/model.ts'
import type { NodeRun } from '../node-run.ts'
import { callHooks } from './call-hooks.ts'
import type { RequestChange } from './hooks.ts'

const CHANGEABLE = ['messages', 'tools', 'settings', 'outputSchema']

/** The request as the extensions want it: each sees what those before it made of it. */
export async function hookedRequest(run: NodeRun, request: ModelRequest): Promise<ModelRequest> {
  let hooked = request
  await callHooks<RequestChange>(run, {
    hook: 'onRequest',
    call: ({ hooks }, context) => hooks?.onRequest?.(hooked, context),
    use: (change) => {
      checkChange(change)
      hooked = { ...hooked, ...change }
    },
  })
  return hooked
}

function checkChange(change: unknown): void {
  const isObject = typeof change === 'object' && change !== null
  const unknown = isObject ? Object.keys(change).find((key) => !CHANGEABLE.includes(key)) : ''
  if (unknown !== undefined) {
    const what = unknown === '' ? `gave ${JSON.stringify(change)}` : `gave "${unknown}"`
    throw new DefinitionError('definition', `onRequest ${what}: it may give { ${CHANGEABLE.join(', ')} }.`)
  }
  const { messages, tools } = change as RequestChange
  if ((messages !== undefined && !Array.isArray(messages)) || (tools !== undefined && !Array.isArray(tools))) {
    throw new DefinitionError('definition', 'onRequest: messages and tools are lists.')
  }
  const odd = messages?.findIndex((message: unknown) => !isMessage(message)) ?? -1
  if (odd !== -1) throw new DefinitionError('definition', `onRequest: messages[${odd}] is none: { role, content }.`)
}

const ROLES: readonly unknown[] = ['system', 'user', 'assistant', 'tool']

function isMessage(message: unknown): boolean {
  if (typeof message !== 'object' || message === null) return false
  const { role, content } = message as { readonly role?: unknown; readonly content?: unknown }
  return ROLES.includes(role) && (typeof content === 'string' || Array.isArray(content))
}
