// The request that a person saw, as the person names it: by its hash.
//
// Owns:      the form of `seen`, and the comparison with what a node asks now.
// Called by: the rules for approvals, questions, results from outside and settled calls; what a principal may answer.
// Must stay true: `seen` comes from whoever answers. Nothing here looks up what the node asks.

import { InputError } from '../../base/error.ts'

/** All of a hash, as it is shown: who may write two requests beforehand finds two with the same beginning. */
const FORM = /^[0-9a-f]{64}$/

/** Does `seen` name the request with this hash? Throws an InputError for what is no whole hash. */
export function isSeen(hash: string, seen: string): boolean {
  requireSeen(seen)
  return hash === seen
}

/** Throws an InputError where a word does not name what was seen. */
export function requireSeen(seen: string | undefined): asserts seen is string {
  if (seen !== undefined && FORM.test(seen)) return
  const wanted = 'give `seen`, the hash that it was shown with, all 64 hex digits of it'
  throw new InputError('invalid_input', `Nothing was answered: ${wanted}.`)
}
