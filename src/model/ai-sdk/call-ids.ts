import type { ToolCall } from '../../graph/content.ts'

/**
 * Ids of calls as a prompt needs them: of letters every provider takes, each once. Providers make them up, repeat them
 * and leave them empty. The same calls always get the same ids.
 */
export class CallIds {
  private readonly used: Set<string> = new Set()
  /** The ids given to calls that have no result yet, by what the provider called them. */
  private readonly open: Map<string, string[]> = new Map()

  called({ id }: ToolCall): string {
    const plain = id.replaceAll(/[^a-zA-Z0-9_-]/g, '_').slice(0, 56) || 'call'
    let given = plain
    for (let count = 2; this.used.has(given); count++) given = `${plain}_${count}`
    this.used.add(given)
    const open = this.open.get(id)
    if (open === undefined) this.open.set(id, [given])
    else open.push(given)
    return given
  }

  /** Results come in the order of their calls. */
  answered(id: string): string {
    return this.open.get(id)?.shift() ?? id
  }
}
