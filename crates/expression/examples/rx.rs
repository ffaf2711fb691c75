use std::time::Instant;
fn main(){
 for (p,t) in [("(?i)(\\w{1,50}x?){1,40}y","ab"),("(a?){200}b","a"),("[a-q][^u-z]{13}x","abcdefghijklmnopqrstuvwxyz"),("\\p{L}{100}","é"),("(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)(.*)\\d$","ab"),("(?:.{0,60}[ab]){0,60}c", "ab"),("^(.*a.{120})$","ab"), ("(.{1,100})*q", "abq"), ("((a|b)*(a|b)*)*c[a-z]{200}","ab")] {
  let text: String = t.chars().cycle().take(1<<20).collect();
  let s=Instant::now();
  match regex::RegexBuilder::new(p).size_limit(1<<18).build(){ Ok(r)=>{ let c=s.elapsed(); let s=Instant::now(); let m=r.is_match(&text); let a=s.elapsed(); let s=Instant::now(); let n=r.captures_iter(&text).take(1000).count(); println!("{p} compile {c:?} match {m} {a:?} captures {n} {:?}", s.elapsed());}, Err(_)=>println!("{p} refused {:?}", s.elapsed())}
 }
}
