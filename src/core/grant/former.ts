import type { Layer } from './grant.ts'

/**
 * Reads rules that were kept before a secret was a request. At that time a secret went wherever programs and hosts were allowed,
 * so a list that allowed all of them, because it was made from everything, goes on to let secrets pass. Any other list stays as
 * it is: it says nothing about secrets.
 */
export function sinceSecrets<Rules extends Pick<Layer, 'allow' | 'ask'>>(rules: Rules): Rules {
  if (!isFormer(rules.allow)) return rules
  return { ...rules, allow: withSecrets(rules.allow), ask: withSecrets(rules.ask) }
}

/** True for a list that was made from everything before a secret was a request, or that looks like it. */
export function isFormer(allow: readonly string[]): boolean {
  return FORMER.some((list) => isList(allow, list)) || isToolList(allow)
}

/** Everything, as it was, and the grant of the command line, which asks before it starts a program or reaches a host. */
const FORMER: readonly (readonly string[])[] = [
  ['tool:*', 'agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*'],
  [
    ...['tool:*', 'agent:*', 'model:*', 'file.list:/workspace/**', 'file.read:/workspace/**'],
    ...['file.write:/workspace/**', 'file.delete:/workspace/**', 'exec:*', 'net:*'],
    ...['tool:memory_remember', 'tool:memory_forget'],
  ],
]

/** Everything but tools, and then the tools that a file or a schedule names. */
function isToolList(allow: readonly string[]): boolean {
  return OTHERS.every((rule, at) => allow[at] === rule) && allow.slice(OTHERS.length).every(isOfTool)
}

const OTHERS: readonly string[] = ['agent:*', 'model:*', 'file.*:**', 'exec:*', 'net:*']

function isOfTool(rule: string): boolean {
  return rule.startsWith('tool:')
}

function isList(one: readonly string[], other: readonly string[]): boolean {
  return one.length === other.length && one.every((rule, at) => rule === other[at])
}

/** Secrets stand behind hosts, as in the lists of today. */
function withSecrets(rules: readonly string[]): readonly string[] {
  return rules.flatMap((rule) => (rule === 'net:*' ? [rule, 'secret:*'] : [rule]))
}
