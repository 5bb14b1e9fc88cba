// next.config.ts
import type { NextConfig } from "next";

const python = process.env.CHAT_ORIGIN ?? "http://127.0.0.1:8000";

const nextConfig: NextConfig = {
  cacheComponents: true, // as create-next-app sets it: the page below works with it and without. Keep its other entries, too
  rewrites: async () => [
    { source: "/api/login", destination: `${python}/api/login` },
    { source: "/api/chat/:path*", destination: `${python}/api/chat/:path*` },
  ],
};

export default nextConfig;
