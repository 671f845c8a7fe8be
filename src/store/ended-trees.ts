/** A place in the queue; empty when the tree has left it. */
export interface Ending<Tree> {
  tree: Tree | null
}

/** Trees without an open turn, first in, first out. A tree that leaves and comes back is the last again. */
export class EndedTrees<Tree extends { ending: Ending<Tree> | null }> {
  private queue: Ending<Tree>[] = []
  private first = 0
  private count = 0

  get size(): number {
    return this.count
  }

  add(tree: Tree): void {
    if (tree.ending !== null) return
    tree.ending = { tree }
    this.queue.push(tree.ending)
    this.count++
  }

  delete(tree: Tree): void {
    if (tree.ending === null) return
    tree.ending.tree = null
    tree.ending = null
    this.count--
  }

  oldest(): Tree | undefined {
    while (this.first < this.queue.length) {
      const tree = this.queue[this.first]?.tree
      if (tree) return tree
      this.first++
      if (this.first > 1000 && this.first * 2 > this.queue.length) this.shorten()
    }
    return undefined
  }

  inOrder(): Tree[] {
    return this.queue.flatMap(({ tree }) => tree ?? [])
  }

  private shorten(): void {
    this.queue = this.queue.slice(this.first)
    this.first = 0
  }
}
