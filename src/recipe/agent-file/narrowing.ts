import { checkGrant, EVERYTHING, type Grant } from '../../grant/grant.ts'
import { splitRule } from '../../grant/rule.ts'

type Domain = 'tool' | 'agent' | 'exec' | 'net' | 'file.list' | 'file.read' | 'file.write' | 'file.delete'

/** What a file needs for itself, however strict it is: its own MCP servers. */
export interface OwnNeeds {
  readonly exec: readonly string[]
  readonly net: readonly string[]
}

/** Of one file, in all: they are compared with one another. */
export const MOST_RULES = 500

/** Collects what a file forbids, asks about or limits itself to. What it says can only narrow. */
export class Narrowing {
  private readonly denied = new Set<string>()
  private readonly asked = new Set<string>()
  private readonly only = new Map<Domain, Set<string>>()

  deny(rules: readonly string[]): void {
    for (const rule of rules) this.denied.add(strict(rule))
  }

  ask(rules: readonly string[]): void {
    for (const rule of rules) this.asked.add(strict(rule))
  }

  /** Nothing else of this domain. Said twice, both lists count. */
  allowOnly(domain: Domain, patterns: readonly string[]): void {
    const known = this.only.get(domain) ?? new Set()
    for (const pattern of patterns) if (isReadable(`${domain}:${pattern}`)) known.add(`${domain}:${pattern}`)
    this.only.set(domain, known)
  }

  /** No changes to files, no programs. */
  readOnly(): void {
    this.denyChanges()
    this.deny(['exec:*'])
  }

  denyChanges(): void {
    this.deny(['file.write:**', 'file.delete:**'])
  }

  /** Null when nothing was said. */
  grant(needs: OwnNeeds): Grant | null {
    this.keep('exec', needs.exec)
    this.keep('net', needs.net)
    // What is searched is searched from the top; of it only what is listed is shown.
    if (this.only.has('file.list')) this.allowOnly('file.list', ['/workspace'])
    // Where programs are listed, lines for a shell are not on the list.
    if (!this.only.has('exec') && [...this.denied, ...this.asked].some(isOfOneProgram)) this.asked.add(SHELL_LINES)
    const isSilent = this.denied.size === 0 && this.asked.size === 0 && this.only.size === 0
    if (isSilent) return null
    return {
      ...(this.only.size === 0 ? {} : { use: this.use() }),
      ...(this.asked.size === 0 ? {} : { ask: [...this.asked].sort() }),
      ...(this.denied.size === 0 ? {} : { deny: [...this.denied].sort() }),
    }
  }

  /** Forbids all of a domain but what the file needs for itself; what it limits itself to has that beside it. */
  private keep(domain: 'exec' | 'net', needed: readonly string[]): void {
    if (needed.length === 0) return
    if (this.denied.delete(`${domain}:*`)) {
      this.only.set(domain, new Set())
      if (domain === 'exec') this.denied.add('tool:shell')
    }
    if (this.only.has(domain)) this.allowOnly(domain, needed)
  }

  /** Everything, but for the domains that have a list of their own. */
  private use(): string[] {
    const rest = EVERYTHING.flatMap((rule) => (rule.startsWith('file.*:') ? FILES : [rule])).filter((rule) => {
      return ![...this.only.keys()].some((domain) => rule.startsWith(`${domain}:`))
    })
    return [...rest, ...[...this.only.values()].flatMap((rules) => [...rules].sort())]
  }
}

/** A command line with pipes, lists or variables. A rule about a program does not see the programs in it. */
const SHELL_LINES = 'exec:sh -c *'

function isOfOneProgram(rule: string): boolean {
  return rule.startsWith('exec:') && rule !== 'exec:*'
}

/** A rule that cannot be read stands for its whole domain. */
function strict(rule: string): string {
  return isReadable(rule) ? rule : `${splitRule(rule).domain}:**`
}

function isReadable(rule: string): boolean {
  try {
    checkGrant({ use: [rule] }, '')
    return true
  } catch {
    return false
  }
}

const FILES = ['file.list:**', 'file.read:**', 'file.write:**', 'file.delete:**']
