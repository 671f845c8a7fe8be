// The methods of the extension Tasks: `tasks/get`, `tasks/update`, `tasks/cancel`.

import { NotFoundError } from '../../../index.ts'
import type { McpCall } from './offer.ts'
import { attachRun, type Peer } from './peer.ts'
import { INVALID_PARAMS, McpRefusal, needTasks } from './read.ts'
import { endedMcpTask, openTask } from './write.ts'

/** A method of the extension. The capability is checked before anything of the request is read. */
export type TaskMethod = (peer: Peer, taskId: unknown, call: McpCall) => Promise<object>

export const TASK_METHODS: Readonly<Record<string, TaskMethod>> = {
  'tasks/get': guarded(getTask),
  'tasks/update': guarded(async (peer, taskId, call) => {
    const { id } = await attachRun(peer, taskId)
    await peer.answer(id, call)
    return {}
  }),
  'tasks/cancel': guarded(async (peer, taskId) => {
    const { id } = await attachRun(peer, taskId)
    const { state } = await peer.runtime.look(id)
    if (state !== 'ended') await peer.runtime.cancel(id, 'The caller cancelled the task.')
    return {}
  }),
}

function guarded(method: TaskMethod): TaskMethod {
  return async (peer, taskId, call) => {
    needTasks(call.client)
    try {
      return await method(peer, taskId, call)
    } catch (error) {
      if (!NotFoundError.isInstance(error)) throw error
      throw new McpRefusal(INVALID_PARAMS, 'There is no such task.')
    }
  }
}

async function getTask(peer: Peer, taskId: unknown, { client }: McpCall): Promise<object> {
  const run = await attachRun(peer, taskId)
  const look = await peer.runtime.look(run.id)
  if (look.state === 'ended') return endedMcpTask(look, await run.result, await peer.shapeOf(look.agent))
  const pending = peer.canAsk(client) ? await peer.pending(run.id) : []
  return openTask(look, peer.requests(pending), await peer.statusText(run.id))
}
