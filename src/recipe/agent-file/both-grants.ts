import { covers, mayMeet } from '../../grant/cover.ts'
import { EVERYTHING, type Grant } from '../../grant/grant.ts'

/**
 * Two grants that narrow as one that does what both do, order not mattering: of what each leaves open, only what the other
 * leaves open too. What cannot be told is forbidden.
 */
export function bothGrants(first: Grant | null, second: Grant | null): Grant | null {
  if (first === null || second === null) return first ?? second
  const asked = [within(first.ask ?? [], openTo(second)), within(second.ask ?? [], openTo(first))]
  const use = first.use === undefined && second.use === undefined ? undefined : common(openTo(first), openTo(second))
  const ask = unique(asked.flatMap((one) => one.inside))
  const delegate = first.delegate ?? second.delegate
  const deny = unique([...(first.deny ?? []), ...(second.deny ?? []), ...asked.flatMap((one) => one.unclear)])
  return {
    ...(delegate === undefined ? {} : { delegate }),
    ...(use === undefined ? {} : { use: use.filter((rule) => !ask.some((one) => covers(one, rule))) }),
    ...(ask.length === 0 ? {} : { ask }),
    ...(deny.length === 0 ? {} : { deny }),
  }
}

/** What a grant allows or asks for. */
function openTo({ use = EVERYTHING, ask = [] }: Grant): string[] {
  return [...use, ...ask].flatMap(oneByOne)
}

function common(first: readonly string[], second: readonly string[]): string[] {
  return unique([...within(first, second).inside, ...within(second, first).inside])
}

interface Within {
  readonly inside: readonly string[]
  /** Rules of which a part may be inside. */
  readonly unclear: readonly string[]
}

/** The parts of rules that others leave open. */
function within(rules: readonly string[], open: readonly string[]): Within {
  const all = rules.flatMap(oneByOne)
  const inside = all.flatMap((rule) => {
    return open.some((one) => covers(one, rule)) ? [rule] : open.filter((one) => covers(rule, one))
  })
  const unclear = all.filter((rule) =>
    open.some((one) => mayMeet(one, rule) && !covers(one, rule) && !covers(rule, one)),
  )
  return { inside: unique(inside), unclear: unclear.filter((rule) => !inside.includes(rule)) }
}

function oneByOne(rule: string): string[] {
  if (!rule.startsWith('file.*:')) return [rule]
  return ['list', 'read', 'write', 'delete'].map((act) => `file.${act}:${rule.slice('file.*:'.length)}`)
}

function unique(rules: readonly string[]): string[] {
  return [...new Set(rules)]
}
