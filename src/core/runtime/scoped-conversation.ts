import type { Json } from '../base/json.ts'
import { readOptions, record } from '../base/options.ts'
import type { ConversationHistory } from '../conversation/history-handle.ts'
import type { Grant } from '../grant/grant.ts'
import { narrowedCeiling, type Principal, type Scope } from '../grant/principal.ts'
import type { Id } from '../graph/rows.ts'
import { findOperation, type OperationName } from '../operations/load.ts'
import { TALK_METHODS } from '../operations/methods.made.ts'
import { addMethods, type TalkOperations } from '../operations/methods.ts'
import type { Declared } from '../operations/operation.ts'
import type { Talker } from '../operations/port.ts'

/** On whose behalf a conversation is changed. */
export interface OnBehalf {
  readonly by: Principal
  /** The layers of the turns that it begins. */
  readonly caller: readonly Json[]
  /** Throws where its runs may not be cancelled. */
  readonly mayCancel: () => void
  /** Rejects where no turn may begin. */
  readonly mayBegin: () => Promise<void>
}

/** How a conversation is opened. */
export interface ConversationOptions {
  /** Narrows everything that its changes begin. Default: nothing. */
  readonly grant?: Grant
}

/** The layers of what is begun in a conversation that was opened so. */
export function narrowedLayers(layers: readonly Json[], options: ConversationOptions): readonly Json[] {
  const { grant } = readOptions('conversation(id, options)', options, { grant: record })
  return grant === undefined ? layers : narrowedCeiling(layers, grant, 'conversation(id, { grant })')
}

type Call = (who: Talker, ...given: readonly unknown[]) => Promise<unknown>

class Talking {
  readonly id: Id
  readonly rootId: Id
  private readonly talker: Talker
  private readonly require: (scope: Scope) => void

  static {
    addMethods(Talking, TALK_METHODS, (self, operation, given) => self.perform(operation, given))
  }

  constructor(talker: Talker, require: (scope: Scope) => void) {
    this.talker = talker
    this.require = require
    this.id = talker.handle.id
    this.rootId = talker.handle.rootId
  }

  /** Changes what was said and done. Throws a DeniedError without the scope `history`. */
  get history(): ConversationHistory {
    this.require('history')
    return this.talker.handle.history
  }

  /** Performs an operation of the table, once its scopes have been checked. */
  private async perform(declared: Declared, given: readonly unknown[]): Promise<unknown> {
    return (declared.as as Call)(this.admitted(declared), ...given)
  }

  /** Performs an operation as a request of HTTP does. */
  async serve(name: OperationName, given: readonly unknown[]): Promise<unknown> {
    const declared = await findOperation(name)
    return ((declared.serve ?? declared.as) as Call)(this.admitted(declared), ...given)
  }

  private admitted({ scope }: Declared): Talker {
    for (const one of typeof scope === 'string' ? [scope] : scope)
      if (one !== 'any' && one !== 'never') this.require(one)
    return this.talker
  }
}

/**
 * A conversation that a principal may read. `history` and everything else that changes it need the scope `history`. See
 * `ConversationHandle` for each method.
 */
export const ScopedConversation = Talking as new (talker: Talker, require: (scope: Scope) => void) => ScopedConversation
export interface ScopedConversation extends Talking, TalkOperations {}
