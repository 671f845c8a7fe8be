import type { NodeRun } from '../agent/node-run.ts'
import { messageOf } from '../base/error.ts'
import { isId } from '../base/id.ts'
import { toJson } from '../base/json.ts'
import { readSessionDocument } from '../graph/child/read-session-document.ts'
import type { SessionDocument } from '../graph/child/session-document.ts'
import type { Id } from '../graph/rows.ts'
import type { SessionStore } from '../store/session-store.ts'

/**
 * What a session store knows of a conversation that is not in the rows; null when nothing can be used. Never throws. What
 * a model says is no id of ours is not even looked for.
 */
export function loadSession(
  { home }: NodeRun,
  store: SessionStore | undefined,
  id: Id | undefined,
): SessionDocument | null | Promise<SessionDocument | null> {
  if (store === undefined || !isId(id) || home.ledger.store.conversation(id) !== undefined) return null
  const failed = (error: unknown) => {
    home.logger.warn(`A session could not be read back: ${messageOf(error)}`, { sessionId: id, error })
    return null
  }
  const read = (found: unknown): SessionDocument | null => {
    if (found === undefined || found === null) return null
    const json = toJson(found)
    const document = json.ok ? readSessionDocument(json.value, id) : json.error
    return typeof document === 'string' ? failed(new Error(document)) : document
  }
  try {
    const found = store.load(id)
    return found instanceof Promise ? found.then(read).catch(failed) : read(found)
  } catch (error) {
    return failed(error)
  }
}
