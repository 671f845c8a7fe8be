import { InputError } from '../base/error.ts'
import { auditTree } from '../graph/audit/audit-tree.ts'
import { readTree } from '../graph/audit/tree-rows.ts'
import type { Id } from '../graph/rows.ts'
import type { WholeTree } from '../store/archive.ts'
import { wrongShape } from '../store/check-shape.ts'
import type { Ledger } from '../store/ledger.ts'
import { memoryStore } from '../store/memory.ts'
import { TreeReader } from '../store/tree-reader.ts'
import { unpackTree } from '../store/unpack-tree.ts'
import { verifyTree } from '../store/verify-tree.ts'
import { archiveOf } from './export.ts'

/**
 * Takes what `exportTree` has given, with the same hashes. Nothing is taken unless all of it is whole, fits its hashes and
 * passes an audit; a tree that is there already, as it is, is left as it is.
 */
export async function importTree(ledger: Ledger, lines: Iterable<string> | AsyncIterable<string>): Promise<Id> {
  const reader = new TreeReader()
  for await (const line of typeof lines === 'string' ? lines.split('\n') : lines) reader.take(line)
  const tree = reader.tree()
  const { store } = ledger
  const archive = archiveOf(store)
  if (store.conversation(tree.rootId) !== undefined && headOf(await archive.read(tree.rootId)) === headOf(tree)) {
    return tree.rootId
  }
  await checkTree(ledger, tree)
  await archive.restore(tree)
  return tree.rootId
}

function headOf(tree: WholeTree | undefined): string | undefined {
  return tree?.records.at(-1)?.hash
}

/** Hashes say that nothing was changed on the way, not that whoever wrote it meant well: the rows are audited too. */
async function checkTree({ kinds }: Ledger, tree: WholeTree): Promise<void> {
  const [altered] = verifyTree(tree)
  if (altered !== undefined) refuse(altered.message)
  const wrong = shapeOf(tree)
  if (wrong !== undefined) refuse(`${wrong}.`)
  const scratch = memoryStore()
  try {
    await scratch.archive?.restore(tree)
    const around = { kinds, isAlive: () => true, hasBody: (hash: string) => scratch.body(hash) !== undefined }
    const found = auditTree(readTree(scratch, tree.rootId), around).find(({ severity }) => severity === 'error')
    if (found !== undefined) refuse(found.message)
  } finally {
    await scratch.close()
  }
}

function shapeOf(tree: WholeTree): string | undefined {
  try {
    return wrongShape(unpackTree(tree))
  } catch {
    return 'a row or event is not what rows and events are'
  }
}

function refuse(why: string): never {
  throw new InputError('invalid_input', `The export is not taken: ${why}`)
}
