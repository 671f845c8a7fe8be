import type { Id, Node } from '../../graph/rows.ts'
import { type AddressParts, addressOf } from './address.ts'

/**
 * The keys of calls: the address of the node, with the try where it is not the first, and with a number where one try
 * makes several calls. A node that runs again after its process was lost has the same keys again.
 */
export class CallKeys {
  private readonly parts: AddressParts
  private readonly counts: Map<Id, { readonly epoch: number; calls: number }> = new Map()

  constructor(parts: AddressParts) {
    this.parts = parts
  }

  next(node: Node): string {
    const known = this.counts.get(node.id)
    const count = known?.epoch === node.epoch ? known : { epoch: node.epoch, calls: 0 }
    this.counts.set(node.id, count)
    count.calls++
    const tried = node.attempt > 1 ? ` try ${node.attempt}` : ''
    const called = count.calls > 1 ? ` call ${count.calls}` : ''
    return `${addressOf(this.parts, node)}${tried}${called}`
  }

  left(nodeId: Id): void {
    this.counts.delete(nodeId)
  }
}
