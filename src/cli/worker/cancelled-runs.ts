import type { Id, Store } from '../../index.ts'
import { shortId } from '../find-run.ts'
import { age } from '../terminal/amounts.ts'
import { oneLine } from '../terminal/clean.ts'

const LOOKED_AT = 200
const NAMED = 5

/** The command that takes up a run which was cancelled. */
export type TakeUp = (runId: Id) => string

/** Without a file where its row has all that is needed. */
export function takeUp(file: string | undefined, store: string | undefined): TakeUp {
  const code = file === undefined ? '' : ` --module ${shellWord(file)}`
  return (runId) => `legate resume ${shortId(runId)}${code}${storeWords(store)}`
}

/** The option that names a store in a command; empty where none was named. */
export function storeWords(store: string | undefined): string {
  return store === undefined ? '' : ` --store ${shellWord(store)}`
}

/** That nothing is unfinished; and how to take up what was cancelled, which goes on only when it is named. */
export function nothingOpen(store: Store, again: TakeUp): string {
  const lines = store
    .roots({ limit: LOOKED_AT })
    .flatMap(({ id }) => store.turnsOf(id, { limit: 1 }))
    .filter(({ outcome }) => outcome?.status === 'cancelled')
    .slice(0, NAMED)
    .map(({ id, conversationId, endedAt }) => {
      const name = oneLine(store.conversation(conversationId)?.agent.name ?? '?')
      return `\n  ${again(id)}  # ${name}, ${age(Date.now() - (endedAt ?? 0))} ago`
    })
  const nothing = 'Nothing is unfinished in this store.'
  return lines.length === 0 ? nothing : `${nothing} What was cancelled goes on when it is named:${lines.join('')}`
}

/** A word of a command, quoted where the shell would read more into it. */
export function shellWord(word: string): string {
  return /^[\w./@:+-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
}
