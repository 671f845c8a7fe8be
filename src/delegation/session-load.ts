import type { NodeRun } from '../agent/node-run.ts'
import { after } from '../base/after.ts'
import { messageOf } from '../base/error.ts'
import { isId } from '../base/id.ts'
import { toJson } from '../base/json.ts'
import { readSessionDocument } from '../graph/child/read-session-document.ts'
import type { SessionPlan } from '../graph/child/session.ts'
import { countedDocument, type SessionDocument } from '../graph/child/session-document.ts'
import type { Conversation, Id } from '../graph/rows.ts'
import type { SessionSettings, SessionStore } from '../store/session-store.ts'

/** What is known of a session that its host's own rows do not hold. */
export type FoundSession = Pick<SessionPlan, 'document' | 'isElsewhere' | 'ceiling'>

const NOTHING: FoundSession = { document: null, isElsewhere: false, ceiling: [] }

/**
 * What can be found of the session that a model names, before anything is planned: rules see one tree. Nothing when it
 * cannot be used. Never throws. What a model says that is no id of ours is not even looked for.
 */
export function loadSession(
  run: NodeRun,
  { scope, store }: SessionSettings,
  id: Id | undefined,
): FoundSession | Promise<FoundSession> {
  if (!isId(id)) return NOTHING
  const { store: rows } = run.home.ledger
  const row = rows.conversation(id)
  // An id that lives anywhere is not gone: it is never read back from a document.
  if (row !== undefined) return scope === 'owner' ? foundElsewhere(run, row) : NOTHING
  return store === undefined ? NOTHING : after(readBack(run, store, id), asFound)
}

function asFound(document: SessionDocument | null): FoundSession {
  return document === null ? NOTHING : { ...NOTHING, document }
}

/** I9: of what is another owner's nothing is read. */
function foundElsewhere({ home, conversation }: NodeRun, row: Conversation): FoundSession {
  const isOwners = conversation.owner !== null && row.owner === conversation.owner && row.type === 'sub_agent'
  if (!isOwners || row.parentConversationId === conversation.id) return NOTHING
  const document = countedDocument(home.ledger.store, row.id) ?? null
  return { document, isElsewhere: true, ceiling: row.ceiling }
}

function readBack(
  { home }: NodeRun,
  store: SessionStore,
  id: Id,
): SessionDocument | null | Promise<SessionDocument | null> {
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
