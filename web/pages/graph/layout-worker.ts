import { layoutColumns } from './layout.ts'
import type { ColumnShape } from './places.ts'

/** Lays columns out beside the page, so that a large graph never holds it up. */
addEventListener('message', ({ data }: MessageEvent<readonly ColumnShape[]>) => postMessage(layoutColumns(data)))
