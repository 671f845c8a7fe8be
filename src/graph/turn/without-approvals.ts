import type { Json } from '../../base/json.ts'

/** What a person allows holds for one conversation, or for one node: a copy of either begins without it. */
export function withoutApprovals<T extends { readonly [key: string]: Json }>(metadata: T): T {
  if (metadata['approved'] === undefined && metadata['edited'] === undefined) return metadata
  const { approved: _, edited: __, ...others } = metadata
  return others as unknown as T
}
