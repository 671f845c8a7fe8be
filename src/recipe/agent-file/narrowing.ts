import { EVERYTHING, type Grant } from '../../grant/grant.ts'
import { matchName, matchPath } from '../../grant/match.ts'
import { splitRule } from '../../grant/rule.ts'

type Domain = 'tool' | 'agent' | 'exec' | 'net' | 'file.list' | 'file.read' | 'file.write' | 'file.delete'

/** Collects what a file forbids, asks about or limits itself to. What it says can only narrow. */
export class Narrowing {
  private readonly denied = new Set<string>()
  private readonly asked = new Set<string>()
  private readonly only = new Map<Domain, Set<string>>()

  deny(...rules: readonly string[]): void {
    for (const rule of rules) this.denied.add(rule)
  }

  ask(...rules: readonly string[]): void {
    for (const rule of rules) this.asked.add(rule)
  }

  /** Nothing else of this domain. Said twice, both lists count. */
  allowOnly(domain: Domain, patterns: readonly string[]): void {
    const known = this.only.get(domain) ?? new Set()
    for (const pattern of patterns) known.add(`${domain}:${pattern}`)
    this.only.set(domain, known)
  }

  /** No changes to files, no programs. */
  readOnly(): void {
    this.deny('file.write:**', 'file.delete:**', 'exec:*')
  }

  /** Null when nothing was said. */
  grant(): Grant | null {
    const isSilent = this.denied.size === 0 && this.asked.size === 0 && this.only.size === 0
    if (isSilent) return null
    return {
      ...(this.only.size === 0 ? {} : { use: this.use() }),
      ...(this.asked.size === 0 ? {} : { ask: [...this.asked].sort() }),
      ...(this.denied.size === 0 ? {} : { deny: [...this.denied].sort() }),
    }
  }

  /** Everything, but for the domains that have a list of their own. */
  private use(): string[] {
    const rest = EVERYTHING.flatMap((rule) => (rule.startsWith('file.*:') ? FILES : [rule])).filter((rule) => {
      return ![...this.only.keys()].some((domain) => rule.startsWith(`${domain}:`))
    })
    return [...rest, ...[...this.only.values()].flatMap((rules) => [...rules].sort())]
  }
}

const FILES = ['file.list:**', 'file.read:**', 'file.write:**', 'file.delete:**']

/** Does `rule` match everything that `other` does? */
export function covers(rule: string, other: string): boolean {
  const [a, b] = [splitRule(rule), splitRule(other)]
  const isFile = b.domain.startsWith('file.')
  if (a.domain !== b.domain && !(isFile && a.domain === 'file.*')) return false
  return isFile ? matchPath(a.pattern, b.pattern) : matchName(a.pattern, b.pattern)
}
