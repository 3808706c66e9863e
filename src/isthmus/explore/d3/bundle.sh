#!/bin/sh
# Makes d3.js, one file with what modules.js names, and LICENSE, the licences of all that
# is in it. Needs npm. The versions are those of package.json.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$here/package.json" "$here/modules.js" "$work"
cd "$work"
npm install --silent --no-audit --no-fund --no-package-lock
npx esbuild modules.js --bundle --minify --format=iife --global-name=d3 \
    --target=es2020 --charset=utf8 --metafile=meta.json --outfile="$here/d3.js"
node -e '
const fs = require("fs");
const inputs = Object.keys(JSON.parse(fs.readFileSync("meta.json")).inputs);
const found = inputs.map(x => /node_modules\/([^/]+)/.exec(x)).filter(x => x);
for (const name of [...new Set(found.map(x => x[1]))].sort()) {
    const { version } = JSON.parse(fs.readFileSync(`node_modules/${name}/package.json`));
    const text = fs.readFileSync(`node_modules/${name}/LICENSE`, "utf-8").trim();
    console.log(`${name} ${version}\n\n${text}\n\n`);
}' > "$here/LICENSE"
